"""Segments of the offsets topic to the typed Delta table, against kafka-dump-log with its offsets decoder.

Both are whole commands, from their start to their end, and all their processes count: for Kelpie that is
Python, the JVM of Spark and its Python workers. Kafka's tool reads a part of the same files, for it is
slow. They take turns, and the least of each counts.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import duckdb

from bench.fleet_segments import ROUNDS_A_DAY, Fleet, name, topic
from bench.measure import Ratio
from bench.tree import Cost, cost
from kelpie.real import fetch, java, releases

PEER = "kafka-dump-log"
KAFKA = "4.3.1"
PEER_RECORDS = 1_000_000
MOST_FOR_TWICE = 2.1
TURNS = 3
"""In turn; the least of each counts."""


def run(records: int, groups: int, partitions: int) -> tuple[list[list[str]], list[Ratio]]:
    """Rows for people, ratios for everyone: half as many records, then all."""
    with tempfile.TemporaryDirectory(prefix="kelpie-bench-") as room:
        return _run(Path(room), records, groups, partitions)


def _run(room: Path, records: int, groups: int, partitions: int) -> tuple[list[list[str]], list[Ratio]]:
    tiny = Fleet(2, 2, 2 / ROUNDS_A_DAY)
    tiny.write(room / "tiny" / "broker-1")
    _ours(room / "tiny", tiny)  # What is compiled once, when Kelpie is new on a machine, is compiled here.
    half, whole = (
        Fleet(groups, partitions, records / share / (groups * partitions) / ROUNDS_A_DAY) for share in (2, 1)
    )
    half.write(room / "half" / "broker-1")
    files = whole.write(room / "whole" / "broker-1")
    turns = [
        (_ours(room / "half", half), _ours(room / "whole", whole), _dump_log(files)) for _ in range(TURNS)
    ]
    half_cost, whole_cost = (
        min(costs, key=_cpu_s) for costs in zip(*(turn[:2] for turn in turns), strict=True)
    )
    peer, peer_records = min((turn[2] for turn in turns), key=lambda it: it[0].cpu_s)
    ours, theirs = whole.records / whole_cost.cpu_s, peer_records / peer.cpu_s
    rows = [
        _row("segments to Delta", fleet.records, it) for fleet, it in ((half, half_cost), (whole, whole_cost))
    ]
    rows.append(_row(f"{PEER} of {KAFKA}", peer_records, peer))
    doubling = whole_cost.cpu_s / half_cost.cpu_s
    memory = whole_cost.peak_mib / half_cost.peak_mib
    rows.append(["twice as many records cost", "", f"{doubling:.2f} times", "", f"{memory:.2f} times"])
    assert doubling <= MOST_FOR_TWICE, f"twice as many records cost {doubling:.2f} times as much"
    if doubling > 1.05:  # Below, the start is all that can be seen.
        further = (whole.records - half.records) / (whole_cost.cpu_s - half_cost.cpu_s)
        rows.append(["further records, once all is started", "", "", f"{further / 1e6:.2f}", ""])
    return rows, [Ratio("pipeline-segments", ours / theirs, PEER)]


def _cpu_s(it: Cost) -> float:
    return it.cpu_s


def _row(what: str, records: int, it: Cost) -> list[str]:
    return [
        what,
        f"{records:,}",
        f"{it.cpu_s:.1f}",
        f"{records / it.cpu_s / 1e6:.3f}",
        f"{it.peak_mib:.0f}",
    ]


def _ours(folder: Path, fleet: Fleet) -> Cost:
    lake = folder.parent / f"lake-of-{folder.name}"
    shutil.rmtree(lake, ignore_errors=True)
    found = cost([sys.executable, "-m", "bench.segment_intake", str(folder), str(lake)])
    expected = {
        "offset_commit": fleet.commits,
        "transaction_marker": fleet.markers,
        "group_metadata": fleet.rebalances,
        "quarantine": 0,
    }
    assert json.loads(found.output) == expected, f"{found.output} instead of {expected}"
    _check_last_offsets(lake, fleet)
    return found


def _check_last_offsets(lake: Path, fleet: Fleet) -> None:
    query = 'select "group", topic, partition, max("offset") from read_parquet(?) group by all'
    with duckdb.connect() as connection:
        files = [str(lake / "bronze" / "offset_commit" / "**" / "*.parquet")]
        last = {row[:3]: row[3] for row in connection.execute(query, [files]).fetchall()}
    assert last == {
        (name(group), topic(group, partition), partition): fleet.last_offset(group, partition)
        for group in range(fleet.groups)
        for partition in range(fleet.partitions)
    }, "the last offsets are not those that were committed"


def _dump_log(files: dict[Path, int]) -> tuple[Cost, int]:
    mine: list[Path] = []
    records = 0
    for file, count in files.items():
        if records >= PEER_RECORDS:
            break
        mine.append(file)
        records += count
    release = releases.find(KAFKA)
    jars = fetch.libraries(KAFKA, release.jars)
    main = release.tools["kafka-dump-log"].main
    # As its script starts it.
    tool = [str(java.find()), "-Xmx256M", "-server", "-XX:+UseG1GC", "-cp", f"{jars}/*", main]
    arguments = ["--offsets-decoder", "--print-data-log", "--files", ",".join(map(str, mine))]
    found = cost([*tool, *arguments], count=b"| offset:")
    assert int(found.output) == records, f"{PEER} told of {found.output} records, and there are {records}"
    return found, records
