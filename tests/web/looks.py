"""Looks at clusters that tests make by hand, one after the other."""

import asyncio
from collections.abc import Iterable

from kelpie.examination import Examination
from kelpie.model.time import Instant
from kelpie.observations import Commit, Generation, Listing, Observations
from kelpie.web.snapshot import Snapshot
from tests.doctor.building import (
    NOW,
    a_broker,
    a_committed,
    a_member,
    a_state,
    a_view,
    an_end,
    an_offsets_topic,
)


def a_look(rows: Observations, at: Instant = NOW) -> Snapshot:
    """As a watch takes it. `at`: when it began."""
    examined = asyncio.run(Examination(evidence=rows).examine())
    return Snapshot(examined, at, 250)


def a_healthy_cluster(
    *groups: str,
    offset: int = 5,
    at: Instant = NOW,
    commits: Iterable[Commit] = (),
    generations: Iterable[Generation] = (),
) -> Observations:
    """Three brokers; each group has one member, which has read up to `offset` of 12 records."""
    return Observations(
        brokers=[a_broker(node) for node in (1, 2, 3)],
        partitions=[*an_offsets_topic(), a_view(0, 1, topic="orders")],
        listings=[
            Listing(node, groups if node == 1 else (), at=at, source=f"broker {node}") for node in (1, 2, 3)
        ],
        states=[a_state("Stable", a_member("app-1", 0), group=group, at=at) for group in groups],
        committed=[a_committed(offset, group, at=at) for group in groups],
        ends=[an_end(12, at=at)],
        commits=list(commits),
        generations=list(generations),
    )
