"""What of the snapshots in the tables the doctor looks at: the same that he looks at in files.

`evidence.looks` says which and why. Here is the same choice twice: of rows of the cluster as a whole, which
the driver reads piece by piece, and of rows of groups, which stay where they are.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kelpie.evidence.collected import Torn, parse_header
from kelpie.evidence.looks import OF_EARLIER, Choice, Leaders, choose
from kelpie.observations import OFFSETS_TOPIC
from kelpie.observations.encoding import dumps, loads
from kelpie.pipeline.sources.snapshots.outputs import EARLIER, FAILED, KNOWN, SURVEY
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
    """Rows that are of no group, in order: what files told, then what surveys did."""
    of_none = pc.field("group").is_null()
    surveyed = pc.starts_with(pc.field("snapshot"), PREFIX)
    found = _rows(lake, cluster, of_none & ~surveyed)
    if not choice.in_order and not choice.failed:
        return found
    chosen = [*choice.earlier, *([choice.newest] if choice.newest else [])]
    found += _leaders(lake, cluster, [name for name in choice.in_order if name != choice.newest])
    wanted = of_none & _among(chosen) | surveyed & (pc.field("kind") == "setting")
    place = {name: number for number, name in enumerate(choice.in_order)}
    looked_at = [row for row in _rows(lake, cluster, wanted) if row["snapshot"] in place]
    looked_at.sort(key=lambda row: (place[row["snapshot"]], row["ordinal"]))
    for row in looked_at:
        if row["snapshot"] == choice.newest or row["kind"] == "setting":
            found.append(row)
        elif row["kind"] in OF_EARLIER:
            found.append({**row, "kind": f"{EARLIER}{row['kind']}"})
    unanswered = _among(choice.failed) & (pc.field("kind") == "unasked")
    return found + [
        {**row, "kind": f"{FAILED}{row['kind']}"} for row in _rows(lake, cluster, of_none & unanswered)
    ]


def rows_of_groups(lake: Lake, cluster: str, choice: Choice, kinds: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of these kinds that are of groups; of earlier looks only what counts of those."""
    of_some = ~pc.field("group").is_null() & pc.field("kind").isin(list(kinds))
    surveyed = pc.starts_with(pc.field("snapshot"), PREFIX)
    chosen = [*choice.earlier, *([choice.newest] if choice.newest else [])]
    found = []
    for row in _rows(lake, cluster, of_some & (~surveyed | _among(chosen))):
        if row["snapshot"] == choice.newest or not row["snapshot"].startswith(PREFIX):
            found.append(row)
        elif row["kind"] in OF_EARLIER:
            found.append({**row, "kind": f"{EARLIER}{row['kind']}"})
    return found


def looked_at(snapshot: "DataFrame", cluster: str) -> "DataFrame":
    """Of the rows of groups in `cluster_snapshot` those that the doctor looks at."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - tables can be read without Spark.

    told = snapshot.where(F.col("kind") == SURVEY).select("snapshot", "body").collect()
    if not told:
        return snapshot
    choice = _chosen(((row["snapshot"], row["body"]) for row in told), cluster)
    surveyed = F.col("snapshot").startswith(PREFIX)
    name = F.col("snapshot")
    others = snapshot.where(~surveyed)
    newest = snapshot.where(name == (choice.newest or ""))
    unanswered = snapshot.where(name.isin(*choice.failed) & (F.col("kind") == KNOWN))
    of_earlier = snapshot.where(name.isin(*choice.earlier) & F.col("kind").isin(*OF_EARLIER))
    earlier = of_earlier.withColumn("kind", F.concat(F.lit(EARLIER), "kind"))
    listings = snapshot.where(name.isin(*choice.earlier, choice.newest or "") & (F.col("kind") == "listing"))
    listed = listings.withColumn("group", F.explode(F.from_json("body", "groups array<string>")["groups"]))
    seen = F.concat(F.lit("an earlier survey ("), F.date_format("at", "yyyy-MM-dd HH:mm"), F.lit(" UTC)"))
    known = (
        listed.where(name != (choice.newest or ""))
        .withColumn("kind", F.lit(KNOWN))
        .withColumn("source", F.coalesce(seen, F.lit("an earlier survey")))
    )
    found = others
    for each in (earlier, known, newest, unanswered):
        found = found.unionByName(each)
    chosen = [*choice.earlier, *([choice.newest] if choice.newest else [])]
    if len(chosen) == len(choice.in_order):
        return found
    # Groups that somebody knows, and of whose offsets none of these looks tells: where did they stand last?
    positions = (F.col("kind") == "committed") & surveyed & ~name.isin(*chosen)
    told_of = found.where(F.col("kind").isin("committed", f"{EARLIER}committed")).select("group").distinct()
    somebody = F.col("kind").isin(KNOWN, f"{EARLIER}{KNOWN}")
    missing = (
        found.where(somebody)
        .select("group")
        .union(listed.select("group"))
        .distinct()
        .join(told_of, "group", "left_anti")
    )
    before = snapshot.where(positions).join(missing, "group", "left_semi")
    last = before.groupBy("group").agg(F.max("snapshot").alias("snapshot"))
    stood = before.join(last, ["group", "snapshot"]).withColumn("kind", F.lit(f"{EARLIER}committed"))
    return found.unionByName(stood)


def _chosen(told: Iterable[tuple[str, str]], cluster: str) -> Choice:
    headers = {}
    for name, line in told:
        try:
            headers[name] = parse_header(line.encode())
        except Torn:  # Of a later release than this one.
            continue
    return choose(headers, cluster)


def _leaders(lake: Lake, cluster: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """Who led the offsets topic, wherever that changed."""
    leaders = Leaders()
    of_topic = (pc.field("kind") == "partition") & (pc.field("topic") == OFFSETS_TOPIC)
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        views: dict[str, list[Any]] = {}
        for row in _rows(lake, cluster, of_topic & _among(some)):
            views.setdefault(row["snapshot"], []).append(loads("partition", row["body"]))
        for name in some:
            leaders.note(views.get(name, ()))
    return [{"kind": "partition", "body": dumps(view)} for view in leaders.rows()]


def _among(names: Sequence[str]) -> pc.Expression:
    return pc.field("snapshot").isin(pa.array(names, pa.string()))


def _rows(lake: Lake, cluster: str, where: pc.Expression) -> list[dict[str, Any]]:
    found = lake.rows(_TABLE, cluster, where)
    ordered: list[dict[str, Any]] = found.sort_by(
        [("snapshot", "ascending"), ("ordinal", "ascending")]
    ).to_pylist()
    return ordered


__all__ = ["choice_of", "looked_at", "rows_of_cluster", "rows_of_groups"]
