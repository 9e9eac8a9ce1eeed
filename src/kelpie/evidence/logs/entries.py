"""From lines to entries: a line with a head, and the lines without one that follow it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kelpie.evidence.logs.layouts import Head, parse_head
from kelpie.evidence.logs.wrappers import WRAPPERS, Wrapped

_LONGEST_TRACE = 60
_LONGEST_DUMP = 2000
"""A broker's dump of its configuration has several hundred lines."""
_ALONE = ("Processed a total of ",)
"""What tools print among the lines of their log."""


@dataclass(slots=True)
class Entry:
    number: int
    line: str
    """As it stands in the file."""
    head: Head
    time: str
    trace: list[str] = field(default_factory=list)


class Entries:
    """Goes through the lines of one file; `heads` and `lines` count."""

    def __init__(self) -> None:
        self.lines = 0
        self.heads = 0
        self._wrapper = ""

    def read(self, lines: Iterable[str]) -> Iterator[Entry]:
        current: Entry | None = None
        for number, line in enumerate(lines, start=1):
            self.lines = number
            inner, time = self._unwrap(line)
            head = parse_head(inner)
            if head is not None:
                self.heads += 1
            elif self.heads and not inner.startswith(_ALONE):
                if current is not None:
                    limit = (
                        _LONGEST_DUMP if current.head.message.rstrip().endswith("values:") else _LONGEST_TRACE
                    )
                    if len(current.trace) < limit:
                        current.trace.append(inner)
                continue
            elif not inner.strip():
                continue
            else:
                # Nobody has given lines a head so far: then each is a message.
                head = Head("", "", "", inner)
                time = time or (current.time if current is not None else "")
            if current is not None:
                yield current
            current = Entry(number, line, head, time or head.time)
            if head.trace:
                current.trace += head.trace.split("\n")[:_LONGEST_TRACE]
        if current is not None:
            yield current

    def _unwrap(self, line: str) -> tuple[str, str]:
        """The line as its program wrote it, and the time that the wrapper knows."""
        if self._wrapper:
            wrapped = WRAPPERS[self._wrapper](line)
            if wrapped is not None:
                return self._unwrap_twice(wrapped)
        elif self.heads > 20:
            return line, ""  # Lines have stood for themselves so far.
        if parse_head(line) is not None and not line.startswith("{"):
            return line, ""
        for name, unwrap in WRAPPERS.items():
            wrapped = unwrap(line)
            if wrapped is not None and (wrapped.time or parse_head(wrapped.line) is not None):
                self._wrapper = name
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
