"""Logs with everything in them, and what the evidence's reader says of a log."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from kelpie.evidence.files import EvidenceFile
from kelpie.evidence.logs import LogReading, read_log
from kelpie.evidence.logs.lines import encoding_of, read_lines
from kelpie.evidence.recognition import Kind
from kelpie.observations import Event
from kelpie.pipeline.sources.inventory import Item

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
    "2026-11-15 20:56:{s:02},{ms:03} WARNING MAXPOLL [app#consumer-{n}] [thrd:main]: Application maximum "
    "poll interval (300000ms) exceeded by {n}ms (adjust max.poll.interval.ms)",
)


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


def by_the_evidence(path: Path, name: str) -> LogReading:
    with path.open("rb") as file:
        encoding = encoding_of(file.read(4))
    return read_log(read_lines(path, encoding), name)


def plain(rows: Sequence[Event]) -> list[Event]:
    return [replace(it, details=dict(sorted(it.details.items()))) for it in rows]


def item(path: Path) -> Item:
    size = path.stat().st_size
    return Item(EvidenceFile(path.name, path, size, None, b""), str(path), frozenset({Kind.LOG}))
