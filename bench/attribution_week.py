"""The repair of a synthetic week: samples of counters to traffic by group, against the same join by others.

All are whole processes, from their start to their end, on the same tables: what brokers exported, which group
had which partition, which offsets were committed. For Kelpie these processes are Python, the JVM of Spark and
its workers. It is judged by the truth: no group may be wrong, totals must be conserved. DuckDB and Polars do
the core of it only: deltas of each series, and those without a group joined with who was assigned then; one
candidate gets it. They do not know restarts of whole brokers, strangers, estimates or gaps.
"""

import json
import sys
import tempfile
from pathlib import Path

from bench.measure import Ratio
from bench.traffic_truth import Score, compare
from bench.traffic_week import CLUSTER, Size, Week, write
from bench.tree import Cost, cost
from kelpie.pipeline.storage.lake import Lake

PARTITIONS = 650
LEAST_RIGHT = 0.999
MOST_FOR_TWICE, MOST_MEMORY_FOR_TWICE = 2.1, 1.15
DUCKDB, POLARS = "duckdb", "polars"
PEERS = {
    DUCKDB: """
import duckdb, sys
base = duckdb.connect()
base.execute("set enable_progress_bar = false")
for name in ("bronze/traffic_sample", "silver/group_generation"):
    view = name.split("/")[1]
    files = f"{sys.argv[1]}/{name}/**/*.parquet"
    base.execute(f"create view {view} as select * from read_parquet('{files}', hive_partitioning = true)")
query = '''
copy (
  with delta as (
    select broker, topic, partition, "group", "at" as ended, lag("at") over w as began,
      messages - case when messages >= lag(messages) over w then lag(messages) over w else 0 end messages,
      bytes - case when bytes >= lag(bytes) over w then lag(bytes) over w else 0 end bytes
    from traffic_sample window w as (partition by broker, topic, partition, "group" order by "at")),
  held as (
    select "group", began, coalesce(ended, timestamptz '2100-01-01') ended,
      unnest(roster).assigned as assigned
    from group_generation),
  owned as (
    select "group", began, ended, unnest(assigned).topic topic, unnest(assigned).partition partition
    from held),
  lost as (select row_number() over () id, * from delta where "group" = '' and messages > 0),
  judged as (
    select l.id, any_value(o."group") owner, count(distinct o."group") owners
    from lost l join owned o on l.topic = o.topic and l.partition = o.partition
      and o.began < l.ended and o.ended > l.began
    group by l.id)
  select broker, topic, partition, case when owners = 1 then owner end "group", began, ended, messages, bytes
  from lost left join judged using (id)
  union all
  select broker, topic, partition, "group", began, ended, messages, bytes from delta
  where "group" <> '' and messages > 0
) to '%s' (format parquet, compression zstd)
'''
print(base.execute(query % (sys.argv[1] + "/duckdb.parquet")).fetchone()[0])
""",
    POLARS: """
import sys
import polars as pl
room = sys.argv[1]
series = ["broker", "topic", "partition", "group"]
samples = pl.scan_parquet(room + "/bronze/traffic_sample/**/*.parquet", hive_partitioning=True)
samples = samples.select(*series, "at", "messages", "bytes").sort(*series, "at")
before = [pl.col(name).shift().over(series).alias(name + "_before") for name in ("at", "messages", "bytes")]
grown = [
    pl.when(pl.col(name) >= pl.col(name + "_before")).then(pl.col(name) - pl.col(name + "_before"))
    .otherwise(pl.col(name)).alias(name)
    for name in ("messages", "bytes")
]
delta = samples.with_columns(*before).with_columns(*grown).filter(pl.col("messages") > 0)
delta = delta.rename({"at": "ended", "at_before": "began"}).drop("messages_before", "bytes_before").collect()
columns = ["group", "began", "ended", "roster"]
held = pl.read_parquet(room + "/silver/group_generation/**/*.parquet", columns=columns)
owned = (
    held.explode("roster").unnest("roster").explode("assigned").unnest("assigned")
    .select("topic", "partition", pl.col("group").alias("owner"), pl.col("began").alias("since"),
            pl.col("ended").alias("until"))
    .drop_nulls("topic")
)
lost = delta.filter(pl.col("group") == "").with_row_index("id")
pairs = lost.select("id", "topic", "partition", "began", "ended").join(owned, on=["topic", "partition"])
pairs = pairs.filter(
    (pl.col("since") < pl.col("ended")) & (pl.col("until").is_null() | (pl.col("until") > pl.col("began")))
)
judged = pairs.group_by("id").agg(pl.col("owner").first(), pl.col("owner").n_unique().alias("owners"))
judged = judged.filter(pl.col("owners") == 1).select("id", "owner")
named = lost.join(judged, on="id", how="left").with_columns(pl.col("owner").alias("group"))
named = named.drop("id", "owner")
both = pl.concat([delta.filter(pl.col("group") != "").select(named.columns), named])
both.write_parquet(room + "/polars.parquet", compression="zstd")
print(both.height)
""",
}


def measure(partitions: int = PARTITIONS) -> tuple[list[list[str]], list[Ratio]]:
    """Rows for people, ratios for everyone: half as many partitions, then all."""
    rows: list[list[str]] = []
    costs: list[tuple[int, Cost]] = []
    with tempfile.TemporaryDirectory(prefix="kelpie-bench-") as name:
        for share in (2, 1):
            week, lake = Week(Size(partitions=partitions // share)), Lake(Path(name, f"week-{share}"))
            samples = write(week, lake)
            own = cost([sys.executable, "-m", "bench.attribution_week", str(lake.root)])
            score = compare(week, lake)
            _check(score, own)
            costs.append((samples, own))
            rows.append(_row("a week of scrapes to traffic by group", samples, own, f"{score.share:.3%}, 0"))
        peers = {peer: cost([sys.executable, "-c", script, str(lake.root)]) for peer, script in PEERS.items()}
    (half, half_cost), (whole, own) = costs
    rows += [_row(f"deltas and join only, {peer}", whole, each, "") for peer, each in peers.items()]
    doubling = own.cpu_s / half_cost.cpu_s / (whole / half) * 2
    memory = own.peak_mib / half_cost.peak_mib
    rows.append(["twice as many samples cost", "", f"{doubling:.2f} times", "", f"{memory:.2f} times", ""])
    further = (whole - half) / (own.cpu_s - half_cost.cpu_s) / 1e6
    rows.append(["further samples, once all is started", "", "", f"{further:.2f}", "", ""])
    assert doubling <= MOST_FOR_TWICE, f"twice as many samples cost {doubling:.2f} times as much"
    assert memory <= MOST_MEMORY_FOR_TWICE, f"twice as many samples need {memory:.2f} times the memory"
    return rows, [Ratio("attribution-week", each.cpu_s / own.cpu_s, peer) for peer, each in peers.items()]


def _check(score: Score, own: Cost) -> None:
    assert score.wrong == 0, f"{score.wrong} deltas are given to a wrong group"
    assert score.unbalanced == 0, f"{score.unbalanced} totals are not conserved"
    assert score.share >= LEAST_RIGHT, f"only {score.share:.3%} of what is decidable is right"
    told = json.loads(own.output)
    assert told["exact"] == score.exact, f"{told} against {score}"


def _row(what: str, samples: int, each: Cost, right: str) -> list[str]:
    speed = f"{samples / each.cpu_s / 1e6:.3f}"
    return [what, f"{samples:,}", f"{each.cpu_s:.1f}", speed, f"{each.peak_mib:.0f}", right]


def _repair(root: Path) -> dict[str, int]:
    """What is measured, as a process of its own."""
    from kelpie.cluster.mappings import MappingHistory  # noqa: PLC0415 - not in the process that measures.
    from kelpie.pipeline.spark.session import open_session  # noqa: PLC0415
    from kelpie.pipeline.storage.frames import ClusterTables  # noqa: PLC0415
    from kelpie.pipeline.tables import TABLES  # noqa: PLC0415
    from kelpie.pipeline.traffic.days import TrafficDays  # noqa: PLC0415

    spark = open_session(brief=True, keep_classes=True)
    lake = Lake(root)
    TrafficDays(ClusterTables(spark, lake, CLUSTER), lambda: MappingHistory(())).make()
    spark.stop()
    return lake.tally(TABLES["attributed_traffic"], CLUSTER, "how")


if __name__ == "__main__":
    print(json.dumps(_repair(Path(sys.argv[1]))))
