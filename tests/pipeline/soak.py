"""A live lab, and a stream over it that is killed again and again: it ends with the tables of a batch.

    python -m tests.pipeline.soak --seconds 300 --kills 8 --seed 7

`soak_load` says what goes on in the lab; a collector looks at the cluster, and logs and scrapes grow beside
it. The stream runs in a process of its own and is killed with its Java (SIGKILL), after a random time, each
time in another phase of its work (`soak_moments`).
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kelpie.lab import SyncCluster
from kelpie.pipeline.derived import make_derived
from kelpie.pipeline.run import run
from kelpie.pipeline.sources.topic import intake as topic
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.summary import Summary
from kelpie.pipeline.tables import TABLES
from tests.pipeline.soak_load import at_work, wait_for_rest
from tests.pipeline.soak_moments import PHASES, TAKING_IN, WRITING, Watch

CLUSTER = "soaked"
PATIENCE_S = 600.0
QUICK = (
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled=false",
    "spark.sql.codegen.wholeStage=false",
    "spark.sql.shuffle.partitions=2",
)
"""None of them lives long, and all have little to do: what Java and Spark do to be fast takes longer."""
EARLY = (WRITING, TAKING_IN)
SELDOM_S = 40
"""Brokers die more often than that, and there are more transactions."""
ENOUGH = 3
"""Phases that kills must have fallen into, if there are as many kills."""
_OF_THE_RUN = {"evidence_file": {"batch"}, "cluster_snapshot": {"snapshot", "ordinal"}}
"""Columns that tell how the input came in, and not what it was."""
_OF_THE_SOURCE = {"source", "replica", "log_epoch", "producer_id", "producer_epoch"}


def soak(
    spark: SparkSession,
    folder: Path,
    *,
    seconds: float,
    kills: int,
    seed: int,
    tell: Callable[[str], None],
    moments: Sequence[str] = PHASES,
) -> dict[str, int]:
    """Rows by table, all equal to those of a batch; raises AssertionError if not.

    At least so long, and with so many kills, at these moments.
    """
    chance = random.Random(seed)
    landing, logs, scrapes = sources = [folder / name for name in ("landing", "logs", "scrapes")]
    for source in sources:
        source.mkdir()
    tables = folder / "tables"
    config = {"group.initial.rebalance.delay.ms": 0, "log.cleaner.enable": "false"}
    lab = SyncCluster(brokers=3, offsets_partitions=8, replication=2, config=config, log_folder=logs)
    with lab as cluster:
        with (
            at_work(cluster, logs, scrapes, chance) as done,
            child("collect", *at(cluster), "--into", landing, "--every", "5s", "-q"),
        ):
            ends = time.monotonic() + seconds
            hit = _killed_again_and_again(
                lambda: stream(cluster, sources, tables, "--every", "1s"),
                tables,
                kills=kills,
                apart_s=seconds / (kills + 1),
                moments=moments,
                chance=chance,
                tell=tell,
            )
            time.sleep(max(0.0, ends - time.monotonic()))
        tell(f"meanwhile: {done}")
        assert done.breaks >= seconds // SELDOM_S, f"brokers died only {done.breaks} times"
        assert done.transactions >= seconds // SELDOM_S, f"only {done.transactions} transactions"
        enough = min(kills, len(moments), ENOUGH)
        assert len(hit) >= enough, f"all kills fell into the same moments: {', '.join(hit)}"
        # What is written after the stream has looked is in the batch only.
        wait_for_rest(cluster)
        with stream(cluster, sources, tables, "--once") as process:
            assert process.wait(PATIENCE_S) == 0
        whole = Lake(folder / "whole")
        raw = topic.open_topic(spark, cluster.bootstrap_servers, streaming=False, through=topic.KELPIE)
        topic.take_in(whole, raw, cluster=CLUSTER, application="all at once", version=0)
    summary: Summary = run(spark, whole, sources, cluster=CLUSTER, only_bronze=True)
    make_derived(ClusterTables(spark, whole, CLUSTER), summary)
    return compared(Lake(tables), whole)


def _killed_again_and_again(
    start: Callable[[], Any],
    tables: Path,
    *,
    kills: int,
    apart_s: float,
    moments: Sequence[str],
    chance: random.Random,
    tell: Callable[[str], None],
) -> set[str]:
    """In which phases."""
    phases = [*moments] * (kills // len(moments) + 1)
    chance.shuffle(phases)
    hit: set[str] = set()
    began = time.monotonic()
    for phase in phases[:kills]:
        watch = Watch(tables)
        with start() as process:
            # First it must have come so far that it does anything at all.
            assert watch.wait_for(chance.choice(EARLY), PATIENCE_S, process), "the stream does nothing"
            time.sleep(chance.uniform(0.0, apart_s / 2))
            seen = watch.wait_for(phase, PATIENCE_S, process)
            os.killpg(process.pid, signal.SIGKILL)  # Java, too, at the same moment.
            process.wait(30)
        left = watch.left_behind()
        gone = f"{time.monotonic() - began:.0f} s: killed {phase}{'' if seen else ', which was not seen'}"
        tell(f"{gone}; left behind: {', '.join(left) or 'nothing'}")
        hit |= {phase} if seen else set()
    return hit


def compared(one: Lake, other: Lake) -> dict[str, int]:
    """Rows by table. Each row as often as in the other lake."""
    counts = {}
    for name in TABLES:
        left, right = rows(one, name), rows(other, name)
        missing, more = right - left, left - right
        assert not missing, f"{name} lacks {missing.total()} of {right.total()} rows: {_some(missing, more)}"
        assert not more, f"{name} has {more.total()} rows that a batch has not: {_some(more)}"
        counts[name] = left.total()
    return counts


def _some(*rows: Counter[str]) -> str:
    return " and not ".join("; ".join(sorted(each)[:2]) or "nothing" for each in rows)


def rows(lake: Lake, name: str) -> Counter[str]:
    """What a table says, however its input came in."""
    table = TABLES[name]
    left_out = _OF_THE_RUN.get(name, set()) | (_OF_THE_SOURCE if table.layer == "bronze" else set())
    found = lake.rows(table, CLUSTER).to_pylist()
    if name == "evidence_file":  # Each file as it was in the end.
        found = list({row["path"]: row for row in sorted(found, key=lambda row: row["batch"])}.values())
    return Counter(repr([value for column, value in row.items() if column not in left_out]) for row in found)


def at(cluster: SyncCluster) -> list[str]:
    return ["-b", cluster.bootstrap_servers]


def stream(cluster: SyncCluster, sources: Sequence[Path], tables: Path, *options: str) -> Any:
    settings = [word for setting in QUICK for word in ("--conf", setting)]
    return child(
        *("pipeline", "stream", "--from", *sources, "--into", tables, "--cluster", CLUSTER),
        *at(cluster),
        *settings,
        *options,
    )


@contextmanager
def child(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """A command of Kelpie's, and whatever it starts, ended with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kelpie", *map(str, arguments)],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # The JVM of a stream that was killed.
        process.wait(30)


def main() -> int:
    from kelpie.pipeline.spark.session import open_session

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="put everything there, and leave it")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # What was started ends, too.
    spark = open_session("local[2]", brief=True)
    with tempfile.TemporaryDirectory(prefix="kelpie-soak-") as room:
        folder: Path = options.keep or Path(room)
        folder.mkdir(parents=True, exist_ok=True)
        counts = soak(
            spark,
            folder,
            seconds=options.seconds,
            kills=options.kills,
            seed=options.seed,
            tell=lambda text: print(text, flush=True),
        )
    print("equal, by table:", ", ".join(f"{name} {count}" for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
