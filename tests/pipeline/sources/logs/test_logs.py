"""The logs of the pipeline say what the evidence's reader says of the same files, however they are split."""

from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kelpie.evidence.logs import LogReading, read_log
from kelpie.evidence.logs.hints import MISFIT, Hints, parse_layout
from kelpie.evidence.logs.lines import is_text, read_lines
from kelpie.observations import Event
from kelpie.pipeline.sources.logs.intake import correct, event_of, read_logs, write_logs
from kelpie.pipeline.sources.logs.parts import Unjoinable, merged, part_of
from kelpie.pipeline.sources.logs.progress import Ledger
from kelpie.pipeline.sources.logs.ranges import read_range
from kelpie.pipeline.sources.logs.reader import Whole, can_be_split
from kelpie.pipeline.sources.logs.rows import as_table, columns_of, settled
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.parquet import NewFile
from tests.evidence import NAMES, unpacked
from tests.pipeline.sources.logs.log_texts import ENTRIES, by_the_evidence, item, mixed, plain


def logs() -> list[Path]:
    return [path for name in NAMES for path in sorted(unpacked(name).rglob("*")) if _is_text(path)]


def _is_text(path: Path) -> bool:
    if not path.is_file() or "__consumer_offsets" in str(path):
        return False
    with path.open("rb") as file:
        head = file.read(4096)
    return bool(head) and is_text(head)


def in_one_piece(path: Path, name: str) -> tuple[list[Event], LogReading]:
    reader = read_range(path, name, None, 0, path.stat().st_size)
    joined = merged([part_of(reader)])
    rows = as_table(settled(columns_of(reader.rows), joined.known[0], name))
    return [event_of({**row, "source": name}) for row in rows.to_pylist()], joined.reading


def same(mine: LogReading, theirs: LogReading) -> None:
    """All that a log says, but for its events, and for the number of lines that mean nothing."""
    assert (mine.lines, mine.first, mine.last, mine.missing) == (
        theirs.lines,
        theirs.first,
        theirs.last,
        theirs.missing,
    )
    for name in ("settings", "brokers", "unasked", "known_groups"):
        assert getattr(mine.observations, name) == getattr(theirs.observations, name), name


@pytest.mark.parametrize("name", NAMES)
def test_recordings_read_by_their_words_say_the_same(name: str) -> None:
    """A line that was passed over meant nothing."""
    compared = 0
    for path in logs():
        if unpacked(name) not in path.parents:
            continue
        try:
            found, reading = in_one_piece(path, path.name)
        except Whole:
            continue
        theirs = by_the_evidence(path, path.name)
        assert plain(found) == plain(theirs.observations.events), path
        same(reading, theirs)
        compared += 1
    assert compared


def test_parts_of_a_log_of_kafka_0_8_say_together_what_the_whole_says() -> None:
    """The settings of a consumer come lines before its name."""
    path = next(unpacked("kafka-0.8.2.2-rebalance-failure").rglob("orders-b-start_app-04.log"))
    size = path.stat().st_size
    theirs = by_the_evidence(path, path.name)
    assert {event.group for event in theirs.observations.events} == {"orders-b-start", None}
    assert {row.of for row in theirs.observations.settings} == {
        "consumer orders-b-start_app-04-1794780702033-ba25d6ad"
    }
    apart = 0
    for cut in range(200, size, 997):
        readers = [read_range(path, path.name, None, *bounds) for bounds in ((0, cut), (cut, size))]
        try:
            joined = merged([part_of(reader) for reader in readers])
        except Unjoinable:
            apart += 1
            continue
        rows = [
            row
            for reader, known in zip(readers, joined.known, strict=True)
            for row in as_table(settled(columns_of(reader.rows), known, path.name)).to_pylist()
        ]
        told = [event_of({**row, "source": path.name}) for row in rows]
        assert plain(told) == plain(theirs.observations.events), cut
        same(joined.reading, theirs)
    assert 0 < apart <= 3  # Within the settings.


@pytest.mark.parametrize("seed", range(12))
def test_mixed_and_damaged_logs_say_the_same(seed: int, tmp_path: Path) -> None:
    """Layouts mixed in one file, CRLF, broken letters, binary trash, no end of the last line."""
    path = tmp_path / "mixed.log"
    start = [ENTRIES[7].format(s=1, ms=number, n=1).encode() for number in range(25)]
    path.write_bytes(b"\n".join([*start, *mixed(seed, 400)]))
    found, reading = in_one_piece(path, "mixed.log")
    theirs = by_the_evidence(path, "mixed.log")
    assert len(found) > 50
    assert plain(found) == plain(theirs.observations.events)
    same(reading, theirs)


@pytest.mark.parametrize(
    "line", [b"x" * 50_000_000, b"\xe4\xb8\xad" * 400_000, b"[Consumer clientId=a, groupId=b] " * 300_000]
)
def test_a_line_of_megabytes_costs_nothing_but_itself(line: bytes, tmp_path: Path) -> None:
    """Of a line that is longer than anything sensible, the beginning is read."""
    path = tmp_path / "long.log"
    entries = [*islice(mixed(5, 40), 40)]
    path.write_bytes(b"\n".join([*entries, line, *entries, entries[0][:30] + line, *entries]))
    found, reading = in_one_piece(path, "long.log")
    theirs = by_the_evidence(path, "long.log")
    assert plain(found) == plain(theirs.observations.events)
    same(reading, theirs)


def in_ranges(
    spark: SparkSession, paths: Sequence[Path], range_bytes: int
) -> tuple[list[Event], dict[str, LogReading]]:
    folder = paths[0].parent / "rows"
    folder.mkdir()
    ledger = Ledger(Lake(paths[0].parent / "lake"), "c", "a")
    told = read_logs(spark, [item(it) for it in paths], folder, ledger, range_bytes=range_bytes)
    assert [log.reason for log in told] == [""] * len(paths)
    correct(told, {})
    table = paths[0].parent / "table"
    rows = written(table, write_logs(spark, told, table, "c"))
    rows.sort(key=lambda row: (row["source"], row["line"], row["part"]))
    return [event_of(row) for row in rows], {log.reading.name: log.reading for log in told}


def written(table: Path, files: Sequence[NewFile]) -> list[dict[str, Any]]:
    return [row for it in files for row in pq.read_table(table / it.path, partitioning=None).to_pylist()]


def test_ranges_of_a_log_say_together_what_the_whole_says(spark: SparkSession, tmp_path: Path) -> None:
    """Numbers of lines, groups, zones, pauses and brokers that are gone go across the edges of ranges."""
    paths = []
    start = [ENTRIES[7].format(s=1, ms=number, n=1).encode() for number in range(25)]
    for seed in range(3):
        path = tmp_path / f"mixed-{seed}.log"
        path.write_bytes(b"\n".join([*start, *mixed(100 + seed, 300)]))
        paths.append(path)
    alone = tmp_path / "one-group.log"
    alone.write_bytes(
        b"\n".join(
            [
                *start,
                b"2026-11-15 20:57:00,000 INFO ConsumerConfig values: ",
                b"\tgroup.id = lonely",
                b"\tmax.poll.interval.ms = 7000",
                *islice(cycle(start), 80),
                b"2026-11-15 20:58:00,000 WARN consumer poll timeout has expired. This means that",
                *islice(cycle(start), 80),
                b"2026-11-15 20:59:00,000 INFO Revoke previously assigned partitions t-1",
            ]
        )
    )
    paths.append(alone)
    assert all(can_be_split(path, "utf-8") for path in paths)
    found, readings = in_ranges(spark, paths, 5003)
    theirs = {path.name: by_the_evidence(path, path.name) for path in paths}
    wanted = [event for name in sorted(theirs) for event in theirs[name].observations.events]
    assert plain(found) == plain(wanted)
    for name, reading in readings.items():
        same(reading, theirs[name])
    (late,) = [it for it in found if it.source.startswith("one-group") and "pause_ms" in it.details]
    assert (late.group, late.details["limit_ms"], late.details["pause_ms"]) == ("lonely", "7000", "67000")


def test_a_log_that_turns_out_to_have_no_dates_is_read_anew_as_a_whole(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its times follow from each other, so ranges cannot be read on their own."""
    path = tmp_path / "turns.log"
    start = [ENTRIES[7].format(s=1, ms=number, n=1).encode() for number in range(60)]
    later = [f"23:5{n}:00.000 [main] INFO x.Y - Offset commit failed: no {n}".encode() for n in range(9)]
    path.write_bytes(b"\n".join([*start, *later, b"00:01:00.000 [main] INFO x.Y - Offset commit failed: no"]))
    found, readings = in_ranges(spark, [path], 2000)
    theirs = by_the_evidence(path, path.name)
    assert plain(found) == plain(theirs.observations.events)
    assert len(found) == 10
    same(readings[path.name], theirs)


def test_a_layout_that_somebody_describes_is_read_by_it(spark: SparkSession, tmp_path: Path) -> None:
    """As a whole, however large; and as the evidence's reader does."""
    path, other = tmp_path / "shop.log", tmp_path / "other-shop.log"
    start = [ENTRIES[number % 2].format(s=number, ms=number, n=1) for number in range(40)]
    for each in (path, other):
        each.write_text("".join(f"~{line[:20]}~{line[20:]}\n" for line in start))
    hints = Hints(
        layouts=(parse_layout(r"*shop.log=~\[?(?P<time>[^~]+)~[^A-Z]*(?P<level>[A-Z]+) (?P<message>.*)"),)
    )
    folder, ledger = tmp_path / "rows", Ledger(Lake(tmp_path / "lake"), "c", "a")
    folder.mkdir()
    told = read_logs(spark, [item(path)], folder, ledger, hints=hints, range_bytes=1000)
    correct(told, {})
    rows = written(tmp_path / "table", write_logs(spark, told, tmp_path / "table", "c"))
    theirs = read_log(read_lines(path, "utf-8"), path.name, hints).observations.events
    assert plain([event_of(row) for row in sorted(rows, key=lambda it: it["line"])]) == plain(theirs)
    assert len(theirs) == 40
    misfit = Hints(layouts=(parse_layout("*=!(?P<message>.*)"),))
    (log,) = read_logs(spark, [item(other)], folder, ledger, hints=misfit)
    assert log.reason == MISFIT
