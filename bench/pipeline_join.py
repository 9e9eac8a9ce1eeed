"""Samples joined with the intervals that they fall into, by buckets of time; peers join as of a moment.

In one session, warmed up, from Parquet files: what is measured is the join with its scan, as CPU of the JVM.
Every sample falls into an interval, and every one has to come out. DuckDB and Polars read the same files, as
processes of their own. All three count what they joined. Two more queries show where Spark's time goes: one
reads both sides, one also exchanges them between partitions, which the peers, in one process, need not.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Ratio
from bench.tree import cost, cpu_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS = 5_000
SAMPLES, INTERVALS = 10_000_000, 1_000_000
ROUNDS = 3
PEERS = {
    "duckdb-asof-join": """
import duckdb, sys
files = [sys.argv[1] + "/" + it + "/*.parquet" for it in ("samples", "intervals")]
query = (
    'select count(s.value + i."interval") from read_parquet(?) s asof join read_parquet(?) i '
    "on s.key = i.key and s.at >= i.began where s.at < i.ended"
)
own = duckdb.connect()
own.execute("set enable_progress_bar = false")
print(own.execute(query, files).fetchone()[0])
""",
    "polars-join-asof": """
import polars, sys
samples, intervals = (
    polars.scan_parquet(sys.argv[1] + "/" + it + "/*.parquet").sort(by)
    for it, by in (("samples", "at"), ("intervals", "began"))
)
joined = samples.join_asof(intervals, left_on="at", right_on="began", by="key", check_sortedness=False)
print(joined.filter(polars.col("at") < polars.col("ended")).select("value", "interval").collect().height)
""",
}


def run(samples: int = SAMPLES, intervals: int = INTERVALS) -> tuple[list[list[str]], list[Ratio]]:
    with tempfile.TemporaryDirectory(prefix="kelpie-bench-") as room:
        command = [sys.executable, "-m", "bench.pipeline_join", room, str(samples), str(intervals)]
        found = json.loads(cost(command).output)
        peers = {name: cost([sys.executable, "-c", script, room]) for name, script in PEERS.items()}
    for name, it in peers.items():
        assert int(it.output) == samples, f"{name} joined {it.output} samples, of {samples}"
    what = f"samples into {intervals:,} intervals of {KEYS:,} keys"
    ours = found["join"]
    rows = [[what, f"{samples:,}", f"{ours:.1f}", f"{samples / ours / 1e6:.3f}", ""]]
    rows += [
        [f"of it, {part}", "", f"{cpu_s:.1f}", "", ""]
        for part, cpu_s in (
            ("reading both sides", found["scan"]),
            ("exchanging them between partitions", found["exchange"] - found["scan"]),
            ("the join itself", ours - found["exchange"]),
        )
    ]
    rows += [
        [
            f"the same, {name}",
            f"{samples:,}",
            f"{it.cpu_s:.1f}",
            f"{samples / it.cpu_s / 1e6:.3f}",
            f"{it.peak_mib:.0f}",
        ]
        for name, it in peers.items()
    ]
    return rows, [Ratio("pipeline-interval-join", it.cpu_s / ours, name) for name, it in peers.items()]


def _measure(room: Path, samples: int, intervals: int) -> dict[str, float]:
    """What is measured, as a process of its own."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - not in the process that measures.

    from kelpie.pipeline.spark.session import open_session  # noqa: PLC0415
    from kelpie.pipeline.transforms.intervals import during, in_buckets  # noqa: PLC0415

    spark = open_session(settings={"spark.driver.memory": "4g"})
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    jvm = gateway.proc.pid
    # The intervals of a key follow each other without a gap, an hour each.
    each = intervals // KEYS
    span_s = each * 3600
    number = F.col("id")
    spark.range(samples).select(
        F.pmod(F.xxhash64(number), F.lit(KEYS)).alias("key"),
        F.timestamp_seconds(F.pmod(F.xxhash64(number, F.lit(1)), F.lit(span_s))).alias("at"),
        number.alias("value"),
    ).write.parquet(str(room / "samples"))
    spark.range(intervals).select(
        (number % KEYS).alias("key"),
        F.timestamp_seconds(F.floor(number / KEYS) * 3600).alias("began"),
        F.timestamp_seconds((F.floor(number / KEYS) + 1) * 3600).alias("ended"),
        number.alias("interval"),
    ).write.parquet(str(room / "intervals"))
    left, right = (spark.read.parquet(str(room / name)) for name in ("samples", "intervals"))
    last = F.timestamp_seconds(F.lit(span_s))
    *sides, place = in_buckets(left, right, ["key"], last=last)
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    # Made anew each time: Spark keeps what it has exchanged for a frame, and would skip it the next time.
    queries: dict[str, Callable[[], list[DataFrame]]] = {
        "scan": lambda: [_counted(side) for side in (left, right)],
        "exchange": lambda: [_counted(side.repartition(partitions, *place)) for side in sides],
        "join": lambda: [
            during(left, right, ["key"], last=last).agg(F.count(F.col("value") + F.col("interval")))
        ],
    }
    least = dict.fromkeys(queries, float("inf"))
    for _ in range(1 + ROUNDS):  # The first one warms up.
        for name, made in queries.items():
            before = cpu_of(jvm)
            counted = [frame.collect()[0][0] for frame in made()]
            least[name] = min(least[name], cpu_of(jvm) - before)
            assert counted[0] == samples, f"{name}: {counted[0]} samples, of {samples}"
    spark.stop()
    return least


def _counted(frame: "DataFrame") -> "DataFrame":
    """A query that needs every value of a frame, and little more."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - not in the process that measures.

    return frame.agg(*(F.count(name) for name in frame.columns))


if __name__ == "__main__":
    print(json.dumps(_measure(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
