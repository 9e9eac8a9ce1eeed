"""The cluster as a whole, from its tables. It is small: the driver reads it, without Spark."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kelpie.cluster import ClusterView, build_cluster
from kelpie.evidence.properties import common_settings
from kelpie.model.time import Instant
from kelpie.observations import Observations, Unasked
from kelpie.pipeline.diagnosis.scraped import file_times, scraped, settle_listings
from kelpie.pipeline.sources.logs.intake import event_of
from kelpie.pipeline.sources.snapshots.chosen import choice_of, in_lake, in_memory, rows_of_cluster
from kelpie.pipeline.sources.snapshots.outputs import observed, topic_ids
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES

_LINE = ["source", "line", "part"]


class KnownCluster:
    """All that tables have of a cluster, without its groups."""

    def __init__(
        self, lake: Lake, name: str, *, snapshots: pa.Table | None = None, events: pa.Table | None = None
    ) -> None:
        """`snapshots`, `events`: rows of cluster_snapshot, and of log_event without a group, if they are in
        memory.
        """
        self.name = name
        self.read = in_lake(lake, name) if snapshots is None else in_memory(snapshots)
        self.choice = choice_of(self.read, name)
        rows = rows_of_cluster(self.read, self.choice)
        seen = observed(rows)
        seen.settings += common_settings(seen.settings)
        if events is None:
            events = lake.rows(TABLES["log_event"], name, pc.field("group").is_null())
        seen.events += [event_of(row) for row in _in_order(events, _LINE)]
        quarantine = lake.rows(TABLES["quarantine"], name)
        seen.unasked += _damage(_in_order(quarantine, ["source", "position"]), seen.unasked)
        if seen.mapping_listings or seen.malformed or lake.count(TABLES["traffic_sample"], name):
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


def _in_order(table: pa.Table, order: Sequence[str]) -> list[dict[str, Any]]:
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
