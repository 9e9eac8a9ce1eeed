"""The rows of `cluster_snapshot` that the doctor uses: the same as of a folder of snapshots.

`evidence.snapshot_choice` chooses snapshots, `observations.earlier` says what counts of an earlier one. Rows
of the cluster are read here with Arrow; rows of groups are many, so the same choice is a column expression.
A row of an earlier survey has "earlier " before its kind, one of a survey without answers "failed ".
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kelpie.evidence.snapshot_choice import Choice, LeaderChanges, choose
from kelpie.evidence.snapshot_files import Torn, parse_header
from kelpie.observations import OFFSETS_TOPIC
from kelpie.observations.earlier import EARLIER_KINDS, EARLIER_SURVEY
from kelpie.observations.encoding import KNOWN, dumps, loads
from kelpie.pipeline.sources.snapshots.outputs import EARLIER, FAILED, SURVEY
from kelpie.pipeline.sources.snapshots.surveys import PREFIX
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TABLE = TABLES["cluster_snapshot"]
_AT_ONCE = 200
"""Snapshots whose leaders are held in memory together."""


def choice_of(lake: Lake, cluster: str) -> Choice:
    rows = lake.rows(_TABLE, cluster, pc.field("kind") == SURVEY).select(["snapshot", "body"]).to_pylist()
    return _chosen(((row["snapshot"], row["body"]) for row in rows), cluster)


def rows_of_cluster(lake: Lake, cluster: str, choice: Choice) -> list[dict[str, Any]]:
    """Rows without a group, in order: first those of files, then those of surveys."""
    of_cluster = pc.field("group").is_null()
    surveyed = pc.starts_with(pc.field("snapshot"), PREFIX)
    rows = _rows(lake, cluster, of_cluster & ~surveyed)
    if not choice.in_order and not choice.failed:
        return rows
    rows += _leaders(lake, cluster, [name for name in choice.in_order if name != choice.newest])
    wanted = of_cluster & _among(choice.used) | surveyed & (pc.field("kind") == "setting")
    order = {name: number for number, name in enumerate(choice.in_order)}
    chosen = [row for row in _rows(lake, cluster, wanted) if row["snapshot"] in order]
    chosen.sort(key=lambda row: (order[row["snapshot"]], row["ordinal"]))
    for row in chosen:
        rows += [row] if row["kind"] == "setting" else _marked(row, choice)
    unanswered = of_cluster & _among(choice.failed) & (pc.field("kind") == "unasked")
    return rows + [{**row, "kind": f"{FAILED}{row['kind']}"} for row in _rows(lake, cluster, unanswered)]


def rows_of_groups(
    lake: Lake, cluster: str, choice: Choice, kinds: Sequence[str] = (), *, group: str | None = None
) -> list[dict[str, Any]]:
    """Rows of all groups, or of one, that are of these kinds, or of any."""
    of_groups = ~pc.field("group").is_null() if group is None else pc.field("group") == group
    if kinds:
        of_groups = of_groups & pc.field("kind").isin(list(kinds))
    of_files = ~pc.starts_with(pc.field("snapshot"), PREFIX)
    rows = _rows(lake, cluster, of_groups & (of_files | _among(choice.used)))
    return [marked for row in rows for marked in _marked(row, choice)]


def _marked(row: dict[str, Any], choice: Choice) -> Iterable[dict[str, Any]]:
    """The row, if it counts; with a mark if it is of an earlier survey."""
    if row["snapshot"] not in choice.earlier:
        return [row]
    return [{**row, "kind": f"{EARLIER}{row['kind']}"}] if row["kind"] in EARLIER_KINDS else []


def chosen_rows(snapshot: "DataFrame", cluster: str) -> "DataFrame":
    """The rows of groups in `cluster_snapshot` that the doctor uses."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - tables can be read without Spark.

    headers = snapshot.where(F.col("kind") == SURVEY).select("snapshot", "body").collect()
    if not headers:
        return snapshot
    choice = _chosen(((row["snapshot"], row["body"]) for row in headers), cluster)
    surveyed = F.col("snapshot").startswith(PREFIX)
    name, kind = F.col("snapshot"), F.col("kind")
    newest = choice.newest or ""
    of_earlier = snapshot.where(name.isin(*choice.earlier) & kind.isin(*EARLIER_KINDS))
    listings = snapshot.where(name.isin(*choice.used) & (kind == "listing"))
    listed = listings.withColumn("group", F.explode(F.from_json("body", "groups array<string>")["groups"]))
    listed_at = F.concat(
        F.lit(f"{EARLIER_SURVEY} ("), F.date_format("at", "yyyy-MM-dd HH:mm"), F.lit(" UTC)")
    )
    listed_before = (
        listed.where(name != newest)
        .withColumn("kind", F.lit(KNOWN))
        .withColumn("source", F.coalesce(listed_at, F.lit(EARLIER_SURVEY)))
    )
    rows = (
        snapshot.where(~surveyed)
        .unionByName(of_earlier.withColumn("kind", F.concat(F.lit(EARLIER), "kind")))
        .unionByName(listed_before)
        .unionByName(snapshot.where(name == newest))
        .unionByName(snapshot.where(name.isin(*choice.failed) & (kind == KNOWN)))
    )
    if len(choice.used) == len(choice.in_order):
        return rows
    # Known groups without committed offsets in these snapshots: the last snapshot that has them counts, too.
    with_offsets = rows.where(kind.isin("committed", f"{EARLIER}committed")).select("group").distinct()
    missing = (
        rows.where(kind.isin(KNOWN, f"{EARLIER}{KNOWN}"))
        .select("group")
        .union(listed.select("group"))
        .distinct()
        .join(with_offsets, "group", "left_anti")
    )
    unused = snapshot.where((kind == "committed") & surveyed & ~name.isin(*choice.used))
    before = unused.join(missing, "group", "left_semi")
    last = before.groupBy("group").agg(F.max("snapshot").alias("snapshot"))
    last_offsets = before.join(last, ["group", "snapshot"])
    return rows.unionByName(last_offsets.withColumn("kind", F.lit(f"{EARLIER}committed")))


def _chosen(header_lines: Iterable[tuple[str, str]], cluster: str) -> Choice:
    headers = {}
    for name, line in header_lines:
        try:
            headers[name] = parse_header(line.encode())
        except Torn:  # A later release wrote it.
            continue
    return choose(headers, cluster)


def _leaders(lake: Lake, cluster: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """Leaders of the offsets topic, wherever they changed."""
    leaders = LeaderChanges()
    of_topic = (pc.field("kind") == "partition") & (pc.field("topic") == OFFSETS_TOPIC)
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        views: dict[str, list[Any]] = {}
        for row in _rows(lake, cluster, of_topic & _among(some)):
            views.setdefault(row["snapshot"], []).append(loads("partition", row["body"]))
        for name in some:
            leaders.add(views.get(name, ()))
    return [{"kind": "partition", "body": dumps(view)} for view in leaders.rows()]


def _among(names: Sequence[str]) -> pc.Expression:
    return pc.field("snapshot").isin(pa.array(names, pa.string()))


def _rows(lake: Lake, cluster: str, where: pc.Expression) -> list[dict[str, Any]]:
    table = lake.rows(_TABLE, cluster, where)
    rows: list[dict[str, Any]] = table.sort_by(
        [("snapshot", "ascending"), ("ordinal", "ascending")]
    ).to_pylist()
    return rows
