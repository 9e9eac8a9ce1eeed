"""Members, partitions, rebalances and lag, of groups that Kafka keeps and that ZooKeeper keeps, as jobs.

Most clusters have no group in ZooKeeper. There, Spark plans nothing for them.
"""

from collections.abc import Iterator

import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.pipeline.storage.frames import ClusterTables, Rows
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.transforms.generations import memberships
from kelpie.pipeline.transforms.lag import ENDS, ends, lags, surveyed_positions
from kelpie.pipeline.transforms.rebalances import rebalances
from kelpie.pipeline.transforms.zookeeper.attempts import attempts
from kelpie.pipeline.transforms.zookeeper.events import OF_ZOOKEEPER, configured
from kelpie.pipeline.transforms.zookeeper.membership import zookeeper_memberships
from kelpie.pipeline.transforms.zookeeper.offsets import kept_offsets
from kelpie.pipeline.transforms.zookeeper.ownership import ownerships
from kelpie.pipeline.transforms.zookeeper.rebalances import zookeeper_rebalances


def zookeeper_tables(tables: ClusterTables) -> Iterator[tuple[str, Rows]]:
    """Rows of ownership_interval and rebalance_attempt."""
    if not _has_zookeeper_groups(tables):
        yield "ownership_interval", ()
        yield "rebalance_attempt", ()
        return
    snapshot = tables.frame("cluster_snapshot")
    events = configured(tables.frame("log_event"), snapshot)
    yield "ownership_interval", ownerships(events, snapshot)
    yield "rebalance_attempt", attempts(events)


def membership_tables(tables: ClusterTables) -> Iterator[tuple[str, Rows]]:
    """Rows of membership_interval."""
    in_zookeeper = _has_zookeeper_groups(tables)
    if not in_zookeeper and not tables.has_rows("group_generation"):
        yield "membership_interval", ()
        return
    events = tables.frame("log_event")
    rows = memberships(tables.frame("group_generation"), events)
    if in_zookeeper:
        snapshot = tables.frame("cluster_snapshot")
        of_zookeeper = zookeeper_memberships(
            configured(events, snapshot), snapshot, tables.frame("ownership_interval")
        )
        rows = rows.unionByName(of_zookeeper, allowMissingColumns=True)
    yield "membership_interval", rows


def rebalance_tables(tables: ClusterTables) -> Iterator[tuple[str, Rows]]:
    """Rows of rebalance."""
    if not any(map(tables.has_rows, ("group_generation", "log_event", "rebalance_attempt"))):
        yield "rebalance", ()
        return
    of_kafka = rebalances(tables.frame("group_generation"), tables.frame("log_event"))
    rows = of_kafka.withColumn("gave_up", F.lit(None).cast("array<string>"))
    if tables.lake.count(TABLES["rebalance_attempt"], tables.cluster):
        of_zookeeper = zookeeper_rebalances(
            tables.frame("membership_interval"), tables.frame("rebalance_attempt")
        )
        rows = rows.unionByName(of_zookeeper, allowMissingColumns=True)
    yield "rebalance", rows


def lag_tables(tables: ClusterTables) -> Iterator[tuple[str, Rows]]:
    """Rows of lag."""
    in_zookeeper = _has_zookeeper_groups(tables, "cluster_snapshot")
    is_end = pc.field("kind") == ENDS
    if not in_zookeeper and not tables.lake.has_rows(TABLES["cluster_snapshot"], tables.cluster, is_end):
        yield "lag", ()
        return
    snapshot = tables.frame("cluster_snapshot")
    kept = kept_offsets(snapshot) if in_zookeeper else None
    positions = surveyed_positions(snapshot)
    yield "lag", lags(tables.frame("commit_timeline"), ends(snapshot), surveyed=positions, kept=kept)


def _has_zookeeper_groups(tables: ClusterTables, *names: str) -> bool:
    """Whether these tables, or both that may, have rows of them."""
    # No other kind comes after these, so parts of files are skipped by the bounds of what is in them.
    is_of_zookeeper = pc.field("kind") >= OF_ZOOKEEPER
    return any(
        tables.lake.has_rows(TABLES[name], tables.cluster, is_of_zookeeper)
        for name in names or ("cluster_snapshot", "log_event")
    )
