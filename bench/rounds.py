"""What a round of the tables that follow step by step costs, with little and with much history in the lake.

1,000 groups have four positions each. History is one commit per position and half hour, so that thirty days
are 5.8 million commits; the round that is measured is 30 s in which each position commits every five seconds:
24,000 commits. Bronze is written directly, so that nothing but the rounds is measured. The last line is one
round with three million commits: 100,000 per second for 30 s, which two cores must do in 60 s of CPU.
"""

import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Ratio, Report
from bench.tree import cost, cpu_of

if TYPE_CHECKING:
    from kelpie.pipeline.storage.frames import ClusterTables

GROUPS, POSITIONS, OFFSETS_PARTITIONS = 1_000, 4, 50
DAYS = (1, 10, 30)
HISTORY_S, ROUND_S, EVERY_S = 1_800, 30, 5
MANY = 3_000_000
ROUNDS = 3
GROWTH = 1.3
_TWO_CORES_S = 2.0 * ROUND_S
_CLUSTER = "c"
_BEGAN = datetime(2026, 11, 1, tzinfo=UTC)


def run() -> Report:
    rows, costs = [], {}
    for days in DAYS:
        found = _apart(str(days))
        costs[days] = found["round_s"]
        what = f"round of {ROUND_S} s, {days} days of history"
        rows.append([what, f"{found['history']:,}", f"{found['new']:,}", f"{found['round_s']:.1f}"])
    many = _apart("many")
    what = f"round of {ROUND_S} s with 100,000 commits per second"
    rows.append([what, f"{many['history']:,}", f"{many['new']:,}", f"{many['round_s']:.1f}"])
    first, last = DAYS[0], DAYS[-1]
    return Report(
        "Rounds",
        "The tables that follow step by step: commit_timeline, offset_regression, traffic. CPU seconds of "
        f"Java and Python; the least of {ROUNDS} rounds. History: one commit per position and half hour.",
        ("what", "commits before", "new commits", "CPU s"),
        rows,
        [
            Ratio("rounds-growth-30-days", costs[first] / costs[last], "one-day-of-history"),
            Ratio("rounds-100k-commits-a-second", _TWO_CORES_S / many["round_s"], "two-cores"),
        ],
    )


def _apart(what: str) -> dict[str, float]:
    """In a process of its own: else the second one would find Java warm."""
    with tempfile.TemporaryDirectory(prefix="kelpie-bench-") as room:
        found: dict[str, float] = json.loads(cost([sys.executable, "-m", "bench.rounds", room, what]).output)
    return found


def _measure(room: Path, what: str) -> dict[str, float]:
    from kelpie.pipeline.spark.session import open_session  # noqa: PLC0415 - not in the process that measures.
    from kelpie.pipeline.storage.frames import ClusterTables  # noqa: PLC0415
    from kelpie.pipeline.storage.lake import Lake  # noqa: PLC0415

    spark = open_session("local[2]", settings={"spark.driver.memory": "4g"})
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    jvm = gateway.proc.pid
    tables = ClusterTables(spark, Lake(room), _CLUSTER)
    log = _Log(tables)
    for _ in range(2):  # The second round leaves state.
        log.append(0, EVERY_S)
        _make(tables)
    if what != "many":
        seconds = int(what) * 86_400
        log.append(seconds, HISTORY_S)
        _make(tables)
    history = log.written
    costs = []
    for _ in range(ROUNDS if what != "many" else 1):
        if what == "many":
            log.append(ROUND_S, ROUND_S * GROUPS * POSITIONS / MANY)
        else:
            log.append(ROUND_S, EVERY_S)
        before = cpu_of(jvm) + time.process_time()
        _make(tables)
        costs.append(cpu_of(jvm) + time.process_time() - before)
    spark.stop()
    new = (log.written - history) / len(costs)
    return {"history": history, "new": new, "round_s": min(costs)}


def _make(tables: "ClusterTables") -> None:
    from kelpie.pipeline.graph import JOBS, waves  # noqa: PLC0415 - not in the process that measures.
    from kelpie.pipeline.rounds.following import do, due  # noqa: PLC0415

    for wave in waves(job for job in JOBS if job.follower is not None):
        for job in wave:
            assert job.follower is not None
            work = due(tables, job.follower)
            if work is not None:
                do(tables, job.follower, work)


class _Log:
    """Commits of all positions, one after the other, into bronze."""

    def __init__(self, tables: "ClusterTables") -> None:
        self._tables, self._now_ms, self._rounds = tables, int(_BEGAN.timestamp() * 1000), 0
        self._batch = 0
        self.written = 0

    def append(self, seconds: float, every_s: float) -> None:
        import numpy as np  # noqa: PLC0415 - not in the process that measures.
        import pyarrow as pa  # noqa: PLC0415

        from kelpie.pipeline.storage.parquet import Writer  # noqa: PLC0415
        from kelpie.pipeline.tables import TABLES  # noqa: PLC0415

        table, lake = TABLES["offset_commit"], self._tables.lake
        lake.open(table)
        writer = Writer(table, lake.path(table), _CLUSTER)
        count = GROUPS * POSITIONS
        position = np.arange(count)
        group = position // POSITIONS
        names = pa.array([f"group-{number}" for number in range(GROUPS)])
        in_partition = count // OFFSETS_PARTITIONS
        place = np.empty(count, np.int64)
        for partition in range(OFFSETS_PARTITIONS):
            mine = group % OFFSETS_PARTITIONS == partition
            place[mine] = np.arange(mine.sum())
        for step in range(max(1, round(seconds / every_s))):
            at = np.full(count, self._now_ms + int(step * every_s * 1000), "datetime64[ms]")
            times = pa.array(at).cast(pa.timestamp("us", "UTC"))
            advance = np.where((position + self._rounds) % 997 == 0, -50, 100)
            writer.write(
                pa.table(
                    {
                        "offsets_partition": pa.array(group % OFFSETS_PARTITIONS, pa.int32()),
                        "log_offset": pa.array(self._rounds * in_partition + place),
                        "written": times,
                        "committed": times,
                        "group": pa.DictionaryArray.from_arrays(pa.array(group, pa.int32()), names),
                        "partition": pa.array(position % POSITIONS, pa.int32()),
                        "offset": pa.array(self._rounds * 100 + advance),
                    }
                ),
                {"topic": "orders", "is_transactional": False, "source": "topic", "log_epoch": 1},
            )
            self._rounds += 1
            self.written += count
        self._now_ms += int(max(seconds, every_s) * 1000)
        lake.add(table, writer.close(), application="bench", version=self._batch)
        self._batch += 1


if __name__ == "__main__":
    print(json.dumps(_measure(Path(sys.argv[1]), sys.argv[2])))
