"""The logs of the pipeline say what the evidence's reader says of the same files, however they are split."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from kelpie.evidence.files import EvidenceFile
from kelpie.evidence.logs import Reading, read_log
from kelpie.evidence.logs.lines import encoding_of, is_text, read_lines
from kelpie.evidence.recognition import Kind
from kelpie.observations import Event
from kelpie.pipeline.sources.inventory import Item
from kelpie.pipeline.sources.log_parts import merged, part_of
from kelpie.pipeline.sources.log_ranges import Whole, can_be_split, read_range
from kelpie.pipeline.sources.log_rows import COLUMNS, finished
from kelpie.pipeline.sources.logs import event_of, events, read_logs, summaries
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
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in finished(reader, joined)]
    found = []
    for row in rows:
        event = event_of({**row, "at": None, "source": name})
        found.append(replace(event, at=row["at"]))
    return found, joined.reader.reading


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


def mixed(seed: int, count: int) -> Iterator[bytes]:
    """A log with everything in it, in any order, some of it damaged."""
    random = Random(seed)
    for number in range(count):
        template = random.choice(ENTRIES)
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


def staged(
    spark: SparkSession, paths: Sequence[Path], range_bytes: int
) -> tuple[list[Event], dict[str, Reading]]:
    items = [
        Item(EvidenceFile(it.name, it, it.stat().st_size, None, b""), str(it), frozenset({Kind.LOG}))
        for it in paths
    ]
    frame = read_logs(spark, items, cluster="c", range_bytes=range_bytes).cache()
    told = summaries(frame)
    assert [log.reason for log in told] == [""] * len(paths)
    rows = events(frame, told, {}).orderBy("source", "line", "part").collect()
    frame.unpersist()
    return [event_of(row.asDict()) for row in rows], {log.reading.name: log.reading for log in told}


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
    found, readings = staged(spark, paths, 5003)
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
    found, readings = staged(spark, [path], 2000)
    theirs = by_the_evidence(path, path.name)
    assert plain(found) == plain(theirs.found.events)
    assert len(found) == 10
    same(readings[path.name], theirs)
