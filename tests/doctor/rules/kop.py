"""Small pieces of which tests build clusters with KoP: scrapes, and listings of the mapping tree."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.finding import Finding, Judgement, Undetermined
from kelpie.model.time import Instant
from kelpie.observations import Member, Observations, Scrape, TrafficSeries
from kelpie.observations.mapping_tree import StoredValue, mapping_rows
from kelpie.observations.traffic import COUNTERS
from tests.doctor.building import NOW, a_case, a_cluster, a_state

MINUTE = 60_000
_number = count(1)


def a_scrape(
    values: Mapping[tuple[str, int, str | None], int],
    broker: str = "broker 1",
    at: Instant | None = None,
) -> Observations:
    """(topic, partition, group) → messages; a message has 100 bytes, and is an entry of its own."""
    name = f"{next(_number):03}.prom"
    sizes = dict(zip(COUNTERS, (1, 100, 1), strict=True))
    return Observations(
        scrapes=[Scrape(broker, at, name)],
        traffic=[
            TrafficSeries(name, *series, counter, messages * size, broker, at, f"{name}:{line}")
            for line, (series, messages) in enumerate(values.items(), start=1)
            for counter, size in sizes.items()
        ],
    )


def a_listing(nodes: Mapping[str, str], at: Instant | None = None, version: int = 2) -> Observations:
    """By name of the node, as "10.0.0.7-app-1": the group that it names."""
    stored = {
        f"/client_group_id/{name}": StoredValue(group.encode(), version) for name, group in nodes.items()
    }
    return mapping_rows(stored, f"{next(_number):03}.zk.txt", at)


def kop(*parts: Observations, **fields: Any) -> ClusterView:
    """A cluster with these scrapes and listings, in this order."""
    rows = Observations().add(*parts)
    return a_cluster(
        scrapes=tuple(rows.scrapes),
        traffic=tuple(rows.traffic),
        malformed=tuple(rows.malformed),
        mapping_listings=tuple(rows.mapping_listings),
        mappings=tuple(rows.mappings),
        **fields,
    )


def a_group(cluster: ClusterView, group: str, *members: Member, at: Instant | None = NOW) -> Case:
    """A group that was described with these members."""
    state = a_state("Stable" if members else "Empty", *members, group=group, at=at)
    return a_case(group, cluster, states=[state], listed=True)


def unknown(cluster: ClusterView, *groups: str) -> list[Case]:
    """Groups of which nothing but the name is known."""
    return [a_case(group, cluster) for group in groups]


def findings(judgement: Sequence[Finding] | Judgement) -> list[Finding]:
    assert isinstance(judgement, list), judgement
    return judgement


def missing(judgement: Sequence[Finding] | Judgement) -> tuple[str, ...]:
    assert isinstance(judgement, Undetermined), judgement
    return judgement.missing
