"""The logs of the lab's brokers: what their group coordinators do, in Kafka's own words and layout.

    [2026-11-15 20:56:49,508] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=32] Stabilized
    group checkout-344 generation 2 with 2 members. (org.apache.kafka.coordinator.group.GroupMetadataManager)

on one line. Each broker has a file, broker-1.log and so on, and goes on writing to it after a restart. Times
are UTC.

The words lie in `words/`, one text file a release, as its own classes have them. [speakers]: a name, the
logger at the end of the line, and how the line begins. [lines]: the kind of the note, its speaker (with the
level, if it is not INFO), the words. A kind may have several lines; a kind that a release does not log, or
logs below INFO, has none. [reasons]: why a rebalance begins. [operations]: the names of operations, where
they differ from other releases.

In the words stand the values of the note (see coordinator/notes.py), and `{node}` and `{partition}`.
`{instance}` of a dynamic member is "null", `{option}` is the instance as Scala writes it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from kelpie.broker.image import OFFSETS_TOPIC
from kelpie.coordinator.notes import Note, NoteKind
from kelpie.lab.lab_errors import LabError
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

_FOLDER = Path(__file__).parent / "words"
STARTED, STOPPED = "STARTED", "STOPPED"
"""Kinds of lines about the broker itself."""


class BrokerLogs:
    """Raises LabError where the folder cannot be written to."""

    def __init__(self, folder: Path, persona: str, node_ids: Iterable[int]) -> None:
        self._words = words_of(persona)
        self._files: dict[int, TextIO] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for node_id in node_ids:
                # Line by line, so that a reader sees all that has happened so far.
                self._files[node_id] = (folder / f"broker-{node_id}.log").open(
                    "a", encoding="utf-8", buffering=1
                )
        except OSError as error:
            self.close()
            raise LabError(f"The logs cannot be written to {folder}: {error.strerror}.") from None

    def write(self, node_id: int, partition: TopicPartition, note: Note, now: Instant) -> None:
        if partition.topic != OFFSETS_TOPIC:
            return
        if note.kind is NoteKind.EXPIRED and not note.values["tombstones"]:
            return  # Kafka checks every ten minutes, and mostly finds nothing to log.
        self._put(node_id, self._words.of(node_id, partition.partition, note), now)

    def started(self, node_id: int, now: Instant) -> None:
        self._put(node_id, self._words.of_broker(node_id, STARTED), now)

    def stopped(self, node_id: int, now: Instant) -> None:
        self._put(node_id, self._words.of_broker(node_id, STOPPED), now)

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _put(self, node_id: int, lines: Iterable[str], now: Instant) -> None:
        file = self._files.get(node_id)
        if file is not None:
            file.writelines(f"[{log_time(now)}] {line}\n" for line in lines)


def log_time(now: Instant) -> str:
    """A time as Kafka's own layout of logs has it."""
    return datetime.fromtimestamp(now // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") + f",{now % 1000:03}"


@dataclass(frozen=True, slots=True)
class Line:
    level: str
    logger: str
    template: str

    def filled(self, values: Mapping[str, Any]) -> str:
        return f"{self.level} {self.template.format_map(values)} ({self.logger})"


@dataclass(slots=True)
class LogWords:
    lines: dict[str, list[Line]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    operations: dict[str, str] = field(default_factory=dict)

    def of(self, node_id: int, partition: int, note: Note) -> list[str]:
        """The lines of a note: most often one, sometimes none or several."""
        lines = self.lines.get(note.kind.name)
        if lines is None:
            return []
        values = self._values(note) | {"node": node_id, "partition": partition}
        return [line.filled(values) for line in lines]

    def of_broker(self, node_id: int, what: str) -> list[str]:
        return [line.filled({"node": node_id}) for line in self.lines[what]]

    def _values(self, note: Note) -> dict[str, Any]:
        values: dict[str, Any] = dict(note.values)
        if "instance" in values:
            instance = values["instance"]
            values["instance"] = "null" if instance is None else instance
            values["option"] = "None" if instance is None else f"Some({instance})"
        if "client_reason" in values:
            values["client_reason"] = values["client_reason"] or "not provided"
        if isinstance(values.get("members"), list):
            values["members"] = ", ".join(values["members"])
        if "during" in values:
            values["during"] = self.operations.get(values["during"], values["during"])
        reason = values.get("reason")
        if isinstance(reason, Note):
            words = self.reasons.get(reason.kind.name, "")
            values["reason"] = words.format_map(self._values(reason))
        return values


@cache
def words_of(persona: str) -> LogWords:
    words = LogWords()
    speakers: dict[str, tuple[str, str]] = {}
    section = ""
    for line in (_FOLDER / f"kafka-{persona}.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            section = line.strip("[]")
            continue
        name, _, rest = line.partition(" ")
        if section == "speakers":
            logger, _, start = rest.partition(" ")
            speakers[name] = (logger, start + " " if start else "")
        elif section == "lines":
            speaker, _, template = rest.partition(" ")
            speaker, _, level = speaker.partition(":")
            logger, start = speakers[speaker]
            words.lines.setdefault(name, []).append(Line(level or "INFO", logger, start + template))
        elif section == "operations":
            words.operations[name] = rest
        else:
            words.reasons[name] = rest
    return words
