"""Segments of the offsets topic to the typed Delta table, against kafka-dump-log with its offsets decoder.

Both are whole commands, from their start to their end, and all their processes count: for Kelpie that is
Python, the JVM of Spark and its Python workers. Kafka's tool reads a part of the same files, for it is
slow.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
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


def run(records: int, groups: int, partitions: int) -> tuple[list[list[str]], list[Ratio]]:
    """Rows for people, ratios for everyone: half as many records, then all."""
    with tempfile.TemporaryDirectory(prefix="kelpie-bench-") as room:
        return _run(Path(room), records, groups, partitions)


def _run(room: Path, records: int, groups: int, partitions: int) -> tuple[list[list[str]], list[Ratio]]:
    tiny = Fleet(2, 2, 2 / ROUNDS_A_DAY)
    tiny.write(room / "tiny" / "broker-1")
    _ours(room / "tiny", tiny)  # What is compiled once, when Kelpie is new on a machine, is compiled here.
    found: list[tuple[Fleet, Cost]] = []
    peer, peer_records = Cost(0, 0), 0
    for share in (2, 1):
        fleet = Fleet(groups, partitions, records / share / (groups * partitions) / ROUNDS_A_DAY)
        disk = room / f"fleet-{share}" / "broker-1"
        files = fleet.write(disk)
        found.append((fleet, _ours(disk.parent, fleet)))
        if share == 1:
            peer, peer_records = _dump_log(files)
    (half, half_cost), (whole, whole_cost) = found
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
    found = cost([sys.executable, "-m", "bench.pipeline_segments", str(folder), str(lake)])
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


def _ingest(folder: Path, tables: Path) -> None:
    """What is measured, as a process of its own: what a run does with segments, from its start on."""
    from kelpie.evidence.archives import Budget  # noqa: PLC0415 - not in the process that measures.
    from kelpie.evidence.files import Search  # noqa: PLC0415
    from kelpie.evidence.recognition import Kind  # noqa: PLC0415
    from kelpie.pipeline.sources.inventory import plan, take_inventory  # noqa: PLC0415
    from kelpie.pipeline.sources.segments.intake import (  # noqa: PLC0415
        described,
        of_offsets_topic,
        on_spark,
        take_in,
    )
    from kelpie.pipeline.spark.session import open_session  # noqa: PLC0415
    from kelpie.pipeline.storage.lake import Lake  # noqa: PLC0415

    context = open_session(brief=True, keep_classes=True).sparkContext
    lake, cluster = Lake(tables), "fleet"
    (batch,) = plan(lake, cluster, take_inventory([folder], Search(tables, Budget()), tables))
    files = of_offsets_topic(described(batch.of(Kind.SEGMENT), {}), cluster)
    runner, cores = on_spark(context), context.defaultParallelism
    done = take_in(lake, files, runner, cores=cores, application=batch.application, version=batch.number)
    print(json.dumps(done.rows))
    context.stop()


def main(arguments: Sequence[str]) -> None:
    folder, tables = arguments
    _ingest(Path(folder), Path(tables))


if __name__ == "__main__":
    main(sys.argv[1:])
