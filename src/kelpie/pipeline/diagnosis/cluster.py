"""The cluster as a whole, from its tables. It is small: the driver reads it, without Spark."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow.compute as pc

from kelpie.cluster import ClusterView, build_cluster
from kelpie.evidence.properties import common_settings
from kelpie.model.time import Instant
from kelpie.observations import Observations, Unasked
from kelpie.pipeline.diagnosis.scraped import file_times, scraped, settle_listings
from kelpie.pipeline.sources.logs.intake import event_of
from kelpie.pipeline.sources.snapshots.chosen import choice_of, rows_of_cluster
from kelpie.pipeline.sources.snapshots.outputs import observed, topic_ids
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES


class KnownCluster:
    """All that tables have of a cluster, without its groups."""

    def __init__(self, lake: Lake, name: str) -> None:
        self.name = name
        self.choice = choice_of(lake, name)
        rows = rows_of_cluster(lake, name, self.choice)
        seen = observed(rows)
        seen.settings += common_settings(seen.settings)
        events = _rows(lake, "log_event", name, ["source", "line", "part"], without_group=True)
        seen.events += [event_of(row) for row in events]
        seen.unasked += _damage(_rows(lake, "quarantine", name, ["source", "position"]), seen.unasked)
        times = file_times(lake, name)
        malformed, seen.malformed = seen.malformed, []
        seen.add(scraped(lake, name, times, malformed))
        settle_listings(seen, times)
        self.observations: Observations = seen
        self.topic_ids = topic_ids(rows)

    def view(self, now: Instant | None) -> ClusterView:
        """`now`: the newest time of all rows, also those of groups."""
        return build_cluster(self.observations, now=now)


def clusters_of(lake: Lake) -> list[str]:
    """Names of the clusters that have rows."""
    return lake.clusters(TABLES["evidence_file"])


def _rows(
    lake: Lake, name: str, cluster: str, order: Sequence[str], *, without_group: bool = False
) -> list[dict[str, Any]]:
    table = lake.rows(TABLES[name], cluster, pc.field("group").is_null() if without_group else None)
    rows: list[dict[str, Any]] = table.sort_by([(column, "ascending") for column in order]).to_pylist()
    return rows


def _damage(rows: Iterable[dict[str, Any]], unasked: Iterable[Unasked]) -> list[Unasked]:
    """Quarantined parts of files, but for files that `unasked` has."""
    known = {row.source for row in unasked}
    return [
        Unasked("file", row["source"], row["reason"], source=row["source"])
        for row in rows
        if row["source"] not in known
    ]
