"""The logs of the pipeline say what the evidence's reader says of the same files, however they are split."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kelpie.evidence.files import EvidenceFile
from kelpie.evidence.logs import Reading, read_log
from kelpie.evidence.logs.lines import encoding_of, is_text, read_lines
from kelpie.evidence.recognition import Kind
from kelpie.observations import Event
from kelpie.pipeline.lake import Lake
from kelpie.pipeline.parquet import NewFile
from kelpie.pipeline.sources.inventory import Item
from kelpie.pipeline.sources.log_parts import merged, part_of
from kelpie.pipeline.sources.log_progress import Ledger
from kelpie.pipeline.sources.log_ranges import read_range
from kelpie.pipeline.sources.log_reader import Whole, can_be_split
from kelpie.pipeline.sources.log_rows import EVENTS, as_table, columns_of, settled
from kelpie.pipeline.sources.logs import correct, event_of, read_logs, write_logs
from tests.evidence import NAMES, unpacked

BROKER = "[2026-11-15 20:56:{s:02},{ms:03}] INFO [GroupCoordinator 1]: "
CLIENT = "2026-11-15 20:56:{s:02},{ms:03} INFO [Consumer clientId=c-{n}, groupId=g-{n}] "
ENTRIES = (
    BROKER + "Preparing to rebalance group g-{n} in state Stable with old generation {n} "
    "(__consumer_offsets-{n}) (reason: removing member m-{n}) (kafka.coordinator.group.GroupCoordinator)",
    CLIENT + "Successfully joined group with generation Generation{{generationId={n}, memberId='m-{n}', "
    "protocol='range'}}",
    CLIENT + "consumer poll timeout has expired. This means the time between calls was longer.",
    CLIENT + "Revoke previously assigned partitions t-{n}",
    "%4|1794776{s:03}.{ms:03}|MAXPOLL|app#consumer-{n}| [thrd:main]: Application maximum poll interval "
    "(300000ms) exceeded by {n}ms (adjust max.poll.interval.ms)",
    '%7|1794776{s:03}.{ms:03}|HEARTBEAT|app#consumer-{n}| [thrd:main]: Group "g-{n}" heartbeat: ünïcödé 中',
    "2026-11-15 20:56:{s:02},{ms:03} ERROR org.example.Worker - it went wrong\n"
    "java.lang.RuntimeException: no\n\tat org.example.Worker.run(Worker.java:{n})\n"
    "Caused by: org.apache.kafka.clients.consumer.CommitFailedException: Offset commit cannot be completed",
    "[2026-11-15 20:56:{s:02},{ms:03}] DEBUG nothing that anybody knows {n} (kafka.log.Log)",
    "2026-11-15 20:56:{s:02},{ms:03} INFO noise of an application {n}",
    "Processed a total of {n} messages",
    '{{"@timestamp": "2026-11-15T20:56:{s:02}.{ms:03}Z", "level": "WARN", "message": "Offset commit failed '
    'on partition t-{n} at offset {n}: The coordinator is not aware of \\u0074his member."}}',
    "[2026-11-15 20:56:{s:02},{ms:03}] INFO [Controller 0]: Broker failure callback for {n} "
    "(kafka.controller.KafkaController)",
    "[2026-11-15 20:56:{s:02},{ms:03}] INFO New broker startup callback for {n} (kafka.controller.X)",
    "2026-11-15 20:56:{s:02},{ms:03} INFO ConsumerConfig values: \n\tgroup.id = g-{n}\n"
    "\tmax.poll.interval.ms = {n}000\n\tclient.id = c-{n}",
    "2026-11-15 22:56:{s:02},{ms:03} DEBUG request(receivedTimeMs=1794776{s:03}000, x)",
    "2026-11-15 20:56:{s:02},{ms:03} INFO kafka.coordinator unknown words for group g-{n}",
    "\x00\x01\x02 binary trash \x7f",
    "",
)


def logs() -> list[Path]:
    return [path for name in NAMES for path in sorted(unpacked(name).rglob("*")) if _is_text(path)]


def _is_text(path: Path) -> bool:
    if not path.is_file() or "__consumer_offsets" in str(path):
        return False
    with path.open("rb") as file:
        head = file.read(4096)
    return bool(head) and is_text(head)


def by_the_evidence(path: Path, name: str) -> Reading:
    with path.open("rb") as file:
        encoding = encoding_of(file.read(4))
    return read_log(read_lines(path, encoding), name)


def plain(rows: Sequence[Event]) -> list[Event]:
    return [replace(it, details=dict(sorted(it.details.items()))) for it in rows]


def in_one_piece(path: Path, name: str) -> tuple[list[Event], Reading]:
    reader = read_range(path, name, None, 0, path.stat().st_size)
    joined = merged([part_of(reader)])
    rows = as_table(settled(columns_of(reader.rows), joined.known[0], name))
    return [event_of({**row, "source": name}) for row in rows.to_pylist()], joined.reading


def same(mine: Reading, theirs: Reading) -> None:
    """All that a log says, but for its events, and for the number of lines that mean nothing."""
    assert (mine.lines, mine.first, mine.last, mine.missing) == (
        theirs.lines,
        theirs.first,
        theirs.last,
        theirs.missing,
    )
    for name in ("settings", "brokers", "unasked", "known_groups"):
        assert getattr(mine.found, name) == getattr(theirs.found, name), name


TOLD = tuple(ENTRIES[number] for number in (0, 1, 2, 3, 7, 8, 11, 12, 13, 14))
"""Those that say their group, or need none."""


def mixed(seed: int, count: int, entries: Sequence[str] = ENTRIES) -> Iterator[bytes]:
    """A log with everything in it, in any order, some of it damaged."""
    random = Random(seed)
    for number in range(count):
        template = random.choice(entries)
        line = template.format(s=number // 20 % 60, ms=number % 1000, n=random.randrange(6)).encode()
        if random.random() < 0.03:
            line = line[: random.randrange(len(line) + 1)]
        if random.random() < 0.03:
            line += bytes(random.randrange(256) for _ in range(9)).replace(b"\n", b"")
        if random.random() < 0.2:
            line = line.replace(b"\n", b"\r\n") + b"\r"
        yield line


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
        assert plain(found) == plain(theirs.found.events), path
        same(reading, theirs)
        compared += 1
    assert compared


@pytest.mark.parametrize("seed", range(12))
def test_mixed_and_damaged_logs_say_the_same(seed: int, tmp_path: Path) -> None:
    """Layouts mixed in one file, CRLF, broken letters, binary trash, no end of the last line."""
    path = tmp_path / "mixed.log"
    start = [ENTRIES[7].format(s=1, ms=number, n=1).encode() for number in range(25)]
    path.write_bytes(b"\n".join([*start, *mixed(seed, 400)]))
    found, reading = in_one_piece(path, "mixed.log")
    theirs = by_the_evidence(path, "mixed.log")
    assert len(found) > 50
    assert plain(found) == plain(theirs.found.events)
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
    assert plain(found) == plain(theirs.found.events)
    same(reading, theirs)


def in_ranges(
    spark: SparkSession, paths: Sequence[Path], range_bytes: int
) -> tuple[list[Event], dict[str, Reading]]:
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


def item(path: Path) -> Item:
    size = path.stat().st_size
    return Item(EvidenceFile(path.name, path, size, None, b""), str(path), frozenset({Kind.LOG}))


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
    wanted = [event for name in sorted(theirs) for event in theirs[name].found.events]
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
    assert plain(found) == plain(theirs.found.events)
    assert len(found) == 10
    same(readings[path.name], theirs)


class Growing:
    """A log that is taken in again and again, into one table."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.lake, self.staging = spark, Lake(folder / "lake"), folder / "rows"
        self.staging.mkdir()
        self.batch = 0
        self.anew = 0
        """How often all of it was read again."""

    def take_in(self, path: Path, *, committed: bool = True) -> list[Event]:
        self.batch += 1
        ledger = Ledger(self.lake, "c", "logs")
        told = read_logs(self.spark, [item(path)], self.staging, ledger, range_bytes=3001)
        correct(told, {})
        files = write_logs(self.spark, told, self.lake.path(EVENTS), "c")
        ledger.save([log.progress for log in told if log.progress is not None], self.batch)
        if not committed:
            return []
        for log in told:
            if log.replaces is not None:
                self.anew += 1
                self.lake.delete(EVENTS, "c", log.replaces.where)
        self.lake.add(EVENTS, files, application="logs", version=self.batch)
        rows = self.lake.rows(EVENTS, "c").to_pylist()
        rows.sort(key=lambda row: (row["line"], row["part"]))
        return [event_of(row) for row in rows]


def wanted(path: Path) -> list[Event]:
    return plain(by_the_evidence(path, path.name).found.events)


@pytest.mark.parametrize(("seed", "entries"), [(0, ENTRIES), (1, TOLD), (2, TOLD)])
def test_a_log_that_grows_is_read_on(
    spark: SparkSession, tmp_path: Path, seed: int, entries: Sequence[str]
) -> None:
    """Cut anywhere: within a line, within a stack trace; now and then a run is killed before its commit."""
    start = [ENTRIES[7].format(s=1, ms=number, n=1).encode() for number in range(25)]
    text = b"\n".join([*start, *mixed(200 + seed, 250, entries)])
    random = Random(seed)
    cuts = sorted(random.sample(range(2000, len(text)), 7))
    path = tmp_path / "it's growing.log"
    growing = Growing(spark, tmp_path)
    for cut in (*cuts, len(text)):
        path.write_bytes(text[:cut])
        growing.take_in(path, committed=random.random() < 0.3)
        assert plain(growing.take_in(path)) == wanted(path), cut
    assert plain(growing.take_in(path)) == wanted(path)


LATER = {
    "who was away is back": (
        ENTRIES[13]
        + "\n"
        + CLIENT
        + "consumer poll timeout has expired. This means the time between calls was longer.",
        CLIENT + "Revoke previously assigned partitions t-{n}",
    ),
    "the limit is told": (
        CLIENT + "consumer poll timeout has expired. This means the time between calls was longer.",
        ENTRIES[13],
    ),
    "the zone is told": (
        ENTRIES[0],
        "2026-11-15 22:56:00,000 DEBUG request(receivedTimeMs=1794776160000, x)",
    ),
    "it is not the only group": ("2026-11-15 20:56:{s:02},{ms:03} WARN Offset commit failed: no", CLIENT),
    "the stack trace goes on": (
        "2026-11-15 20:56:{s:02},{ms:03} ERROR org.example.Worker - Offset commit failed: no",
        "Caused by: org.apache.kafka.common.errors.RebalanceInProgressException: yes",
    ),
}


@pytest.mark.parametrize(("first", "later"), LATER.values(), ids=list(LATER))
def test_what_later_lines_say_of_earlier_ones_counts(
    spark: SparkSession, tmp_path: Path, first: str, later: str
) -> None:
    """Then the log is read anew, and its rows are replaced."""
    lines = [ENTRIES[1].format(s=1, ms=number, n=1) for number in range(25)]
    path = tmp_path / "client.log"
    growing = Growing(spark, tmp_path)
    lines.append(first.format(s=2, ms=0, n=1))
    path.write_text("\n".join(lines) + "\n")
    before = growing.take_in(path)
    assert plain(before) == wanted(path)
    lines.append(later.format(s=9, ms=0, n=2 if later is CLIENT else 1))
    path.write_text("\n".join(lines) + "\n")
    after = growing.take_in(path)
    assert plain(after) == wanted(path)
    assert growing.anew == 1
    assert after[: len(before)] != before


def test_new_lines_of_a_quiet_log_do_not_make_it_be_read_anew(spark: SparkSession, tmp_path: Path) -> None:
    """Only what is new is read; and it goes on under another name when it was rotated."""
    lines = [ENTRIES[number % 2].format(s=number, ms=number, n=number % 3) for number in range(58)]
    path = tmp_path / "server.log"
    growing = Growing(spark, tmp_path)
    for count in (30, 31, 45, 58):
        path.write_text("\n".join(lines[:count]) + "\n")
        found = growing.take_in(path)
        assert plain(found) == wanted(path)
    assert growing.anew == 0
    rotated = path.rename(tmp_path / "server.log.1")
    with rotated.open("a") as file:
        file.write(ENTRIES[0].format(s=59, ms=59, n=1) + "\n")
    path.write_text("\n".join(line.replace("20:56", "20:57") for line in lines[:30]) + "\n")
    everything = growing.take_in(rotated)
    assert [it.source for it in everything[-2:]] == ["server.log:58", "server.log.1:59"]
    assert len(growing.take_in(path)) == 59 + 30
    assert growing.anew == 0


def test_a_log_that_cannot_be_read_on_is_told_once_under_its_new_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Too short to know its layout for sure, and then copied away, as logrotate does it."""
    lines = [ENTRIES[0].format(s=number, ms=number, n=1) for number in range(9)]
    path = tmp_path / "server.log"
    growing = Growing(spark, tmp_path)
    path.write_text("\n".join(lines) + "\n")
    assert len(growing.take_in(path)) == 9
    copy = tmp_path / "server.log.1"
    copy.write_text("\n".join([*lines, lines[5]]) + "\n")
    path.write_text("")
    assert plain(growing.take_in(copy)) == wanted(copy)
    path.write_text(lines[7] + "\n")
    assert len(growing.take_in(path)) == 11


def test_a_log_is_still_known_when_its_old_name_has_told_of_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Between two looks it was copied away and emptied; the copy is found only after the new lines."""
    lines = [ENTRIES[0].format(s=number, ms=number, n=1) for number in range(40)]
    path, copy = tmp_path / "server.log", tmp_path / "server.log.1"
    growing = Growing(spark, tmp_path)
    path.write_text("\n".join(lines) + "\n")
    assert len(growing.take_in(path)) == 40
    path.write_text("\n".join(line.replace("20:56", "20:57") for line in lines[:5]) + "\n")
    assert len(growing.take_in(path)) == 45
    copy.write_text("\n".join([*lines, lines[7]]) + "\n")
    assert len(growing.take_in(copy)) == 46


def test_a_log_that_was_cut_short_is_read_anew(spark: SparkSession, tmp_path: Path) -> None:
    """The same first line, and then other ones: what is there now counts."""
    lines = [ENTRIES[0].format(s=number, ms=number, n=1) for number in range(50)]
    path = tmp_path / "server.log"
    growing = Growing(spark, tmp_path)
    path.write_text("\n".join(lines) + "\n")
    assert len(growing.take_in(path)) == 50
    path.write_text("\n".join([lines[0], *lines[25:]]) + "\n")
    assert plain(growing.take_in(path)) == wanted(path)
    assert growing.anew == 1
