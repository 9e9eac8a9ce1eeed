"""What the log of a consumer shows of its state: from lines to sightings, without input or output.

The templates are those of `kelpie.evidence.logs`. The doctor may read a quotation as an event; guard ends
processes, so here a line must have the shape of a line that the client itself wrote:

- It has a level, and the logger is one of the client's; or, where the layout has no logger, the message
  begins with the client's bracket "[Consumer clientId=…". A template must fit the whole message.
- A line of librdkafka names the instance ("app#consumer-1"), and its level is that of its tag.
- ConsumerRebalanceFailedException counts at the beginning of a line of a stack trace. The trace belongs to an
  entry of level ERROR or above, or to an uncaught exception, and its next line is the frame of Kafka's class.
  If the consumers of this process have named themselves, it must name one of them.

Who writes all of that into a watched stream, line for line, cannot be told from the client.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kelpie.evidence.logs import librdkafka
from kelpie.evidence.logs.exceptions import find_exception
from kelpie.evidence.logs.layouts import Head, parse_head, relayed
from kelpie.evidence.logs.log_reader import TABLE
from kelpie.evidence.logs.matching import Meaning, Message, split_prefix
from kelpie.observations import EventKind as Kind

LONGEST_TEXT = 1000
_LONGEST_MESSAGE = 8000
_WATCHED = frozenset(
    (
        *(Kind.COORDINATOR_FOUND, Kind.COORDINATOR_LOST, Kind.LOOKUP_FAILED),
        *(Kind.JOINING, Kind.JOINED, Kind.ASSIGNED, Kind.REVOKED, Kind.CONSUMED),
        *(Kind.POLL_INTERVAL_EXCEEDED, Kind.FENCED, Kind.CLIENT_FAILED),
    )
)
_SEVERE = frozenset(("ERROR", "FATAL", "CRITICAL", "SEVERE"))
_CLIENT_LOGGER = re.compile(
    r"(?:[\w$.-]+\.)?org\.apache\.kafka\.clients\.|o\.a\.k\.c\."  # whole, shaded, or shortened by logback
    r"|kafka\.(?:coordinator|consumer|client|cluster|conn|net)\b|aiokafka\."
    r"|(?:Abstract|Consumer)Coordinator$|[A-Z]\w+MembershipManager(?:Impl)?$|\w+RequestManager$"
)
_CONSUMER_INSTANCE = re.compile(r".*#consumer-\d+$", re.DOTALL)
_LEVELS_OF_FATAL = frozenset(("0", "CRITICAL"))
_UNCAUGHT = re.compile(r'Exception in thread "[^"]*" (?=kafka\.common\.)')
_REBALANCE_FAILED = re.compile(
    r"(?:Caused by: )?kafka\.common\.ConsumerRebalanceFailedException: \S+ can't rebalance after \d+ retries"
)
_FRAME = "\tat kafka.consumer.ZookeeperConsumerConnector"
_REGISTERING = re.compile(r"begin registering consumer (\S+) in ZK$")


@dataclass(frozen=True, slots=True)
class Sighting:
    """One line, with what belongs to it, that says something about the consumer."""

    kind: Kind | None
    """None: a pattern of the user's own fits the line."""
    text: str
    """The line as it stands; of a long one the beginning."""
    error: int | None = None
    form: str = ""
    """Of REBALANCE_FAILED: watcher, start-up or new session."""


class OwnNames:
    """The ids by which the ZooKeeper consumers of one process have named themselves, in any stream."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def add(self, name: str) -> None:
        self._names.add(name)

    def may_be(self, name: str) -> bool:
        """Whether a consumer of this process may have that id. At level WARN none names itself."""
        return not self._names or name in self._names


class LogWatch:
    """The lines of one stream or file, while one process runs."""

    def __init__(self, own_patterns: Iterable[re.Pattern[str]] = (), names: OwnNames | None = None) -> None:
        self._own_patterns = tuple(own_patterns)
        self._names = names or OwnNames()
        self._head: Head | None = None
        self._line = ""
        self._previous = ""
        """The line before, if it belongs to the same entry."""

    def line(self, line: str) -> list[Sighting]:
        sightings = []
        if any(pattern.search(line) for pattern in self._own_patterns):
            sightings.append(Sighting(None, line[:LONGEST_TEXT]))
        head = parse_head(line)
        uncaught = _UNCAUGHT.match(line) if head is None else None
        if head is not None:
            self._head, self._line, self._previous = relayed(head), line, ""
            sightings += self.entry(self._head, line)
        elif uncaught is not None:
            self._head, self._line = Head("", "FATAL", "", line), line
            self._previous = line[uncaught.end() :]
        elif self._head is not None:
            sightings += self._trace(self._head, line)
            self._previous = line
        return sightings

    def entry(self, head: Head, line: str) -> list[Sighting]:
        """A line with a head; a stack trace may be in it, as in JSON."""
        who, text = ("", head.message) if head.facility else split_prefix(head.message)
        message = Message(who, text[:_LONGEST_MESSAGE], "", head)
        registering = _REGISTERING.match(text)
        if registering is not None and head.logger.endswith("ZookeeperConsumerConnector"):
            self._names.add(registering[1])
        sightings = [
            Sighting(meaning.kind, line[:LONGEST_TEXT], _error(meaning))
            for meaning in _meanings(message)
            if meaning.kind in _WATCHED
        ]
        if head.trace:
            self._line, self._previous = line, ""
            for part in head.trace.split("\n"):
                sightings += self._trace(head, part)
                self._previous = part
        return sightings

    def _trace(self, head: Head, line: str) -> list[Sighting]:
        """A line of a stack trace: only the frame behind the exception decides."""
        if not line.startswith(_FRAME) or head.level not in _SEVERE:
            return []
        if _REBALANCE_FAILED.match(self._previous) is None:
            return []
        message = Message(*split_prefix(head.message), self._previous, head)
        sightings = []
        for meaning in find_exception(message) or ():
            if self._names.may_be(str(meaning.fields.get("member", ""))):
                text = f"{self._line[:LONGEST_TEXT]} | {self._previous[:LONGEST_TEXT]}"
                sightings.append(Sighting(meaning.kind, text, form=meaning.details["form"]))
        return sightings


def _meanings(message: Message) -> Sequence[Meaning]:
    head = message.head
    if head.facility:
        table = librdkafka.TABLES.get(head.facility)
        if table is None or _CONSUMER_INSTANCE.match(head.name) is None:
            return ()
        if head.facility == "FATAL" and head.level not in _LEVELS_OF_FATAL:
            return ()
        return table.find(message) or ()
    if not head.level:
        return ()
    of_client = _CLIENT_LOGGER.match(head.logger) if head.logger else message.who.startswith("Consumer ")
    return (TABLE.find(message) or ()) if of_client else ()


def _error(meaning: Meaning) -> int | None:
    error = meaning.fields.get("error")
    return error if isinstance(error, int) else None
