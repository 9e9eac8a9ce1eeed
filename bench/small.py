"""A run over a small recording, beside a bare Spark session with one aggregation.

The first evidence of an on-call engineer is small: what a run costs then is the start of Spark, and what
Spark plans for each table.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Ratio, Report
from bench.tree import cost

RECORDING = Path(__file__).parent.parent / "tests" / "evidence" / "kafka-4.3.1-coordinator-outage.tar.xz"
ROUNDS = 3
_BARE = """
import os
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.master("local[*]").getOrCreate()
spark.range(1_000_000).groupBy(F.col("id") % 7).agg(F.sum("id")).collect()
spark.stop()
"""


def run() -> Report:
    bare, whole = [], []
    for _ in range(ROUNDS):  # They take turns, so that a noisy moment hits both alike.
        bare.append(_cost([sys.executable, "-c", _BARE]))
        with tempfile.TemporaryDirectory(prefix="kelpie-bench-") as tables:
            words = ["pipeline", "run", "--from", str(RECORDING), "--into", tables, "-q"]
            whole.append(_cost([sys.executable, "-m", "kelpie", *words]))
    rows = [
        ["bare session, one aggregation", *_least(bare)],
        ["kelpie pipeline run, tables and findings", *_least(whole)],
    ]
    names = ("small-run-wall", "small-run-cpu")
    ratios = [
        Ratio(name, min(peer[number] for peer in bare) / min(own[number] for own in whole), "bare-session")
        for number, name in enumerate(names)
    ]
    about = (
        "A recording of a real outage, 7 MB, to all tables and findings. CPU seconds and memory of Java and "
        f"Python together; the least of {ROUNDS} runs, which leaves out the first one on a machine: it also "
        "keeps Spark's classes for later ones. A ratio of 0.5 is twice the cost of the bare session."
    )
    return Report("Small runs", about, ("what", "wall s", "CPU s", "peak memory, MiB"), rows, ratios)


def _cost(command: Sequence[str]) -> tuple[float, float, float]:
    began = time.perf_counter()
    found = cost(command)
    return time.perf_counter() - began, found.cpu_s, found.peak_mib


def _least(measured: Sequence[tuple[float, float, float]]) -> list[str]:
    wall, cpu, memory = (min(column) for column in zip(*measured, strict=True))
    return [f"{wall:.1f}", f"{cpu:.1f}", f"{memory:.0f}"]
