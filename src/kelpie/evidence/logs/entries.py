"""From lines to entries: a line with a head, and the lines without one that follow it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kelpie.evidence.logs.hints import LogLayout
from kelpie.evidence.logs.layouts import Head, parse_head, relayed
from kelpie.evidence.logs.wrappers import WRAPPERS, Wrapped

_LONGEST_TRACE = 60
_LONGEST_DUMP = 2000
"""A broker's dump of its configuration has several hundred lines."""
_HEADS_TO_TRUST = 20
ALONE = ("Processed a total of ",)
"""What tools print among the lines of their log."""


@dataclass(slots=True)
class LogEntry:
    number: int
    line: str
    """As it stands in the file."""
    head: Head
    time: str
    trace: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Adds a line without a head that belongs to the entry; beyond a limit, such lines are dropped."""
        is_dump = self.head.message.rstrip().endswith("values:")
        if len(self.trace) < (_LONGEST_DUMP if is_dump else _LONGEST_TRACE):
            self.trace.append(line)


def begin(number: int, line: str, head: Head, time: str) -> LogEntry:
    head = relayed(head)
    entry = LogEntry(number, line, head, time)
    if head.trace:
        entry.trace += head.trace.split("\n")[:_LONGEST_TRACE]
    return entry


class Entries:
    """Goes through the lines of one file; `heads` and `lines` count."""

    def __init__(self, layout: LogLayout | None = None) -> None:
        """`layout`: the one that the user described; None: it is recognised."""
        self._layout = layout
        self.lines = 0
        self.heads = 0
        self.wrapper = ""
        """The wrapper that puts something in front of the lines; empty: none."""

    @property
    def is_plain(self) -> bool:
        """So many lines came without a wrapper that none is looked for any more."""
        return not self.wrapper and self.heads > _HEADS_TO_TRUST

    def read(self, lines: Iterable[str]) -> Iterator[LogEntry]:
        return self.read_numbered(enumerate(lines, start=1))

    def read_numbered(self, lines: Iterable[tuple[int, str]]) -> Iterator[LogEntry]:
        current: LogEntry | None = None
        for number, line in lines:
            self.lines = number
            if self._layout is not None:
                inner, time, head = line, "", self._layout.head(line)
            else:
                inner, time = self._unwrap(line)
                head = parse_head(inner)
            if head is not None:
                self.heads += 1
            elif self.heads and not inner.startswith(ALONE):
                if current is not None:
                    current.add(inner)
                continue
            elif not inner.strip():
                continue
            else:
                # No line has had a head so far, so each line is a message.
                head = Head("", "", "", inner)
                time = time or (current.time if current is not None else "")
            if current is not None:
                yield current
            current = begin(number, line, head, time or head.time)
        if current is not None:
            yield current

    def _unwrap(self, line: str) -> tuple[str, str]:
        """The line as its program wrote it, and the time that the wrapper knows."""
        if self.wrapper:
            wrapped = WRAPPERS[self.wrapper](line)
            if wrapped is not None:
                return self._unwrap_twice(wrapped)
        elif self.is_plain:
            return line, ""
        if parse_head(line) is not None and not line.startswith("{"):
            return line, ""
        for name, unwrap in WRAPPERS.items():
            wrapped = unwrap(line)
            if wrapped is not None and (wrapped.time or parse_head(wrapped.line) is not None):
                self.wrapper = name
                return self._unwrap_twice(wrapped)
        return line, ""

    @staticmethod
    def _unwrap_twice(wrapped: Wrapped) -> tuple[str, str]:
        """Kubernetes around Docker, a system log around Kubernetes."""
        for unwrap in (WRAPPERS["kubernetes"], WRAPPERS["docker"]):
            inside = unwrap(wrapped.line)
            if inside is not None:
                return inside.line, inside.time or wrapped.time
        return wrapped.line, wrapped.time
