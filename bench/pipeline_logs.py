"""Lines of a mixed log of a gigabyte to events in the Delta table, as `kelpie pipeline run` takes them in.

One process: it opens a session, takes in a small log for each core, so that nothing starts or is compiled
for the first time, and then the big one; the CPU that the second takes, of the JVM and of all Python
workers, is what counts. Two peers read a part of the same file and do less: they only say which lines have
any of the words that Kelpie looks for. `grep -F` is C; Python's `re` is what a script would use.
"""

import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from bench.measure import Ratio
from bench.pipeline_log_lines import write
from bench.tree import Cost, cost, cpu_of_session
from kelpie.evidence.logs.markers import markers

SIZE = 1_000_000_000
PEER_LINES = 400_000


def run(size: int = SIZE) -> tuple[list[list[str]], list[Ratio]]:
    with tempfile.TemporaryDirectory(prefix="kelpie-bench-") as room:
        return _run(Path(room), size)


def _run(room: Path, size: int) -> tuple[list[list[str]], list[Ratio]]:
    small, big = room / "small", room / "big"
    for folder in (small, big):
        folder.mkdir()
    for core in range(os.cpu_count() or 1):
        write(small / f"mixed-{core}.log", 1)
    log = write(big / "mixed.log", size)
    whole = cost([sys.executable, "-m", "bench.pipeline_logs", str(room)])
    found = json.loads(whole.output)
    assert found["lines"] == log.lines, f"{found['lines']} lines, and there are {log.lines}"
    assert Counter(found["kinds"]) == log.events, f"{found['kinds']} instead of {dict(log.events)}"
    (grep, regex), lines = _peers(room, big / "mixed.log")
    ours = log.lines / found["cpu_s"]
    rows = [
        _row(
            f"log lines, {log.size / 1e6:,.0f} MB, {log.events.total():,} events",
            log.lines,
            found["cpu_s"],
            whole,
        ),
        _row("the same with the start of Spark", log.lines, whole.cpu_s, whole),
        _row("grep -F, lines only", lines, grep.cpu_s, grep),
        _row("Python's re, lines only", lines, regex.cpu_s, regex),
    ]
    return rows, [
        Ratio("pipeline-log-lines", ours / (lines / regex.cpu_s), "python-re-finding-lines-only"),
        Ratio("pipeline-log-lines", ours / (lines / grep.cpu_s), "grep-F-finding-lines-only"),
    ]


def _row(what: str, lines: int, cpu_s: float, it: Cost) -> list[str]:
    return [what, f"{lines:,}", f"{cpu_s:.1f}", f"{lines / cpu_s / 1e6:.3f}", f"{it.peak_mib:.0f}"]


def _peers(room: Path, log: Path) -> tuple[tuple[Cost, Cost], int]:
    words, part = room / "words.txt", room / "part.log"
    words.write_text("\n".join(markers()) + "\n")
    with log.open("rb") as source, part.open("wb") as target:
        for _ in range(PEER_LINES):
            target.write(source.readline())
    with part.open("rb") as file:
        lines = sum(1 for _ in file)
    grep = cost(["env", "LC_ALL=C", "grep", "-c", "-F", "-f", str(words), str(part)])
    script = (
        "import re, sys; words = open(sys.argv[1], 'rb').read().splitlines(); "
        "search = re.compile(b'|'.join(map(re.escape, words))).search; "
        "print(sum(search(line) is not None for line in open(sys.argv[2], 'rb')))"
    )
    regex = cost([sys.executable, "-c", script, str(words), str(part)])
    assert grep.output == regex.output, f"grep found {grep.output} lines, re {regex.output}"
    return (grep, regex), lines


def _measure(room: Path) -> dict[str, object]:
    """What is measured, as a process of its own."""
    from kelpie.pipeline.run import run  # noqa: PLC0415
    from kelpie.pipeline.spark.session import open_session  # noqa: PLC0415
    from kelpie.pipeline.storage.lake import Lake  # noqa: PLC0415 - not in the process that measures.
    from kelpie.pipeline.tables import TABLES  # noqa: PLC0415

    spark = open_session(brief=True)
    run(spark, Lake(room / "lake-small"), [room / "small"], cluster="bench", only_bronze=True)
    lake = Lake(room / "lake")
    before = cpu_of_session()
    took = run(spark, lake, [room / "big"], cluster="bench", only_bronze=True)
    cpu_s = cpu_of_session() - before
    kinds = lake.open(TABLES["log_event"]).to_pyarrow_dataset().to_table(["kind", "line"]).to_pandas()
    spark.stop()
    return {
        "cpu_s": cpu_s,
        "seconds": took.seconds,
        "kinds": kinds["kind"].value_counts().to_dict(),
        "lines": _lines(room / "big" / "mixed.log"),
    }


def _lines(path: Path) -> int:
    count = 0
    with path.open("rb") as file:
        while block := file.read(1 << 24):
            count += block.count(b"\n")
    return count


if __name__ == "__main__":
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    print(json.dumps(_measure(Path(sys.argv[1]))))
