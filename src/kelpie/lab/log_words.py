"""The words in which each release of Kafka writes to its log what its group coordinator does.

They lie in `words/`, one text file a release, as its own classes have them. [speakers]: a name, the logger at
the end of the line, and how the line begins. [lines]: what happened, who says it (with the level, if it is
not INFO), the words. A kind may have several lines; one that a release keeps to itself, or says below INFO,
has none. [reasons]: why a rebalance begins. [operations]: what the release calls them, if not as others do.

In the words stand the values of the note (see coordinator/notes.py), and `{node}` and `{partition}`.
`{instance}` of a dynamic member is "null", `{option}` is the instance as Scala writes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kelpie.coordinator.notes import Note

_FOLDER = Path(__file__).parent / "words"
STARTED, STOPPED = "STARTED", "STOPPED"
"""What is said of a broker itself."""


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
        """What is said of it: most often one line, sometimes none or several."""
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
