"""One log file, from its lines to events."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo

from kelpie.evidence import properties
from kelpie.evidence.logs import java_broker, java_client, java_coordinator, kafka_python, librdkafka
from kelpie.evidence.logs.attribution import Groups
from kelpie.evidence.logs.configurations import BROKER_DUMP, CONSUMER_DUMP, read_dump, settings_of_group
from kelpie.evidence.logs.entries import Entries, Entry
from kelpie.evidence.logs.exceptions import find_exception
from kelpie.evidence.logs.matching import Found, Message, Table, says, split_prefix
from kelpie.evidence.logs.pauses import with_pauses
from kelpie.evidence.logs.prefixes import facts_of
from kelpie.evidence.logs.times import Clock, Float, Stamp
from kelpie.model.time import Instant
from kelpie.observations import Event, EventKind, Observations, Setting, Unasked

MOST_EVENTS_OF_A_KIND = 50_000
_LONGEST_TEXT = 4000
_LONGEST_BEGINNING, _LONGEST_END = 6000, 2000
_LONGEST_MESSAGE = _LONGEST_BEGINNING + _LONGEST_END
_LIBRDKAFKA_GROUP = re.compile(r'\bGroup "(.+?)"(?=[: ])')
_EXCEPTION_LINE = re.compile(r"^(?:Caused by: )?[\w.$]*(?:Exception|Error)\b")
_VERSION = re.compile(r"^Kafka version ?: ?(\d[\w.-]*)")
_FOR_GROUP = re.compile(r"\bfor group (\S+?)(?=[\s:;,]|\.?$)")


def _arrived(found: Found, _: Message) -> Sequence[Found]:
    return [] if found.details.get("records", "0") == "0" else [found]


_CONSUMED = (
    says(EventKind.CONSUMED, "Processed a total of {records} messages", then=_arrived),
    says(
        EventKind.CONSUMED,
        "Fetch {*} at offset {offset} for partition {tp} returned fetch data {*}recordsSizeInBytes={records}"
        ")",
        then=_arrived,
    ),
)
_TABLE = Table(
    (
        *java_client.PATTERNS,
        *java_coordinator.PATTERNS,
        *java_broker.PATTERNS,
        *kafka_python.PATTERNS,
        *_CONSUMED,
    )
)


@dataclass(slots=True)
class Reading:
    """What one log says."""

    name: str
    found: Observations = field(default_factory=Observations)
    lines: int = 0
    heads: int = 0
    """How many lines had a time, a level or the like. None at all: it is perhaps no log."""
    unknown: int = 0
    """How many entries, lines with what belongs to them, mean nothing here."""
    first: Instant | None = None
    last: Instant | None = None
    missing: Float = Float.FIXED
    """YEAR or DATE: its lines lack that, and nothing in it tells: all its times are off by one amount."""

    def shift(self, by: int | None) -> None:
        """Sets the times of a dateless log right. None: nobody knows; then it has none."""
        self.missing = Float.FIXED
        self.first, self.last = _shifted(self.first, by), _shifted(self.last, by)
        self.found.events = [replace(it, at=_shifted(it.at, by)) for it in self.found.events]
        self.found.brokers = [replace(it, at=_shifted(it.at, by)) for it in self.found.brokers]


class _Reader:
    def __init__(self, name: str, zone: tzinfo | None) -> None:
        self.reading = Reading(name)
        self._clock = Clock(zone)
        self._groups = Groups()
        self._events: list[tuple[Event, Stamp | None]] = []
        self._counts: Counter[EventKind] = Counter()
        self._gone: set[int] = set()
        self._settings: list[Setting] = []
        self._release = ""
        self._broker: dict[str, str] | None = None
        self._broker_source = ""
        self._first: Stamp | None = None
        self._last_time = ""
        self._in_sequence = False
        self._betrayed = False

    def read(self, lines: Iterable[str]) -> Reading:
        entries = Entries()
        for entry in entries.read(lines):
            self._entry(entry)
        self.reading.lines, self.reading.heads = entries.lines, entries.heads
        self._finish()
        return self.reading

    def _entry(self, entry: Entry) -> None:
        head = entry.head
        if head.facility:
            who, text = "", _bounded(head.message)
            table = librdkafka.TABLES.get(head.facility)
        else:
            who, text = split_prefix(_bounded(head.message))
            table = _TABLE
        trace = "\n".join(map(_bounded, entry.trace)) if entry.trace else ""
        message = Message(who, text, trace, head)
        found = table.find(message) if table is not None else None
        if found is None:
            found = self._other(entry, message)
        self.reading.unknown += not found
        facts = self._facts(entry, message)
        stamp = self._time(entry, needed=bool(found))
        for each in found or ():
            self._event(each, facts, entry, stamp)

    def _time(self, entry: Entry, *, needed: bool) -> Stamp | None:
        """Most lines mean nothing, and then nobody asks when they were written; but see `Clock.read`."""
        if not entry.time:
            return None
        self._last_time = entry.time
        betrays = not self._betrayed and "TimeMs" in entry.head.message
        if not (needed or betrays or self._in_sequence or self._first is None):
            return None
        stamp = self._clock.read(entry.time)
        if stamp is not None:
            self._first = self._first or stamp
            self._in_sequence = self._in_sequence or stamp.float in (Float.YEAR, Float.DATE)
            if betrays:
                self._betrayed = self._clock.betray(stamp, entry.head.message)
        return stamp

    def _other(self, entry: Entry, message: Message) -> Sequence[Found] | None:
        """Dumps of configurations, versions, exceptions in other people's words."""
        text = message.text
        if text.startswith(CONSUMER_DUMP):
            dump = read_dump(entry.trace)
            where = self._where(entry)
            self._settings += settings_of_group(dump, where)
            if dump.get("group.id", "null") != "null":
                self._groups.note(dump["group.id"], dump.get("client.id"), f"group.id in {where}")
        elif text.startswith(BROKER_DUMP):
            if self._broker is None:
                self._broker, self._broker_source = read_dump(entry.trace), self._where(entry)
        elif text.startswith("Kafka version"):
            match = _VERSION.match(text)
            self._release = match[1] if match is not None else self._release
        elif "Exception" in text or "Exception" in message.trace:
            return find_exception(message)
        elif not self._groups.named and entry.head.logger.startswith("kafka."):
            match = _FOR_GROUP.search(text)
            if match is not None:
                self._groups.note(match[1], None, self._where(entry))
        return None

    def _facts(self, entry: Entry, message: Message) -> dict[str, str | int]:
        if not entry.head.facility:
            facts = facts_of(message.who)
            if "group" in facts:
                client = str(facts.get("client_id", ""))
                self._groups.note(str(facts["group"]), client, self._where(entry))
            return facts
        instance = entry.head.name
        if instance not in self._groups.of_client:
            match = _LIBRDKAFKA_GROUP.search(message.text)
            if match is not None:
                self._groups.note(match[1], instance, self._where(entry))
        return {"client_id": instance.partition("#")[0]} if instance else {}

    def _event(self, found: Found, facts: dict[str, str | int], entry: Entry, stamp: Stamp | None) -> None:
        if self._repeats(found):
            return
        self._counts[found.kind] += 1
        if self._counts[found.kind] > MOST_EVENTS_OF_A_KIND:
            return
        fields = {**facts, **found.fields}
        details = dict(found.details)
        if entry.head.name:
            details["instance"] = entry.head.name
        if "group" in fields:
            self._groups.note(str(fields["group"]), details.get("instance"), self._where(entry))
        event = Event(
            found.kind,
            None,
            self._where(entry),
            _quoted(entry),
            details=details,
            **fields,  # type: ignore[arg-type]
        )
        self._events.append((event, stamp))

    def _offset(self, stamp: Stamp) -> int:
        return self._clock.offset.get(stamp.float, 0)

    def _repeats(self, found: Found) -> bool:
        """A controller without its peers says for every partition that they are gone: once is enough."""
        node = found.fields.get("node")
        if found.kind is EventKind.BROKER_UNFENCED and isinstance(node, int):
            self._gone.discard(node)
        elif found.kind is EventKind.BROKER_FENCED and isinstance(node, int):
            repeated = node in self._gone and found.fields.get("reason") == java_broker.GONE
            self._gone.add(node)
            return repeated
        return False

    def _where(self, entry: Entry) -> str:
        return f"{self.reading.name}:{entry.number}"

    def _finish(self) -> None:
        reading, found = self.reading, self.reading.found
        events = [
            replace(event, at=None if stamp is None else stamp.at + self._offset(stamp))
            for event, stamp in self._events
        ]
        found.events = with_pauses(self._groups.attribute(events), self._settings)
        last = self._clock.read(self._last_time)
        reading.first = None if self._first is None else self._first.at + self._offset(self._first)
        reading.last = None if last is None else last.at + self._offset(last)
        if self._first is not None and self._clock.fixed(self._first) is None:
            reading.missing = self._first.float
        found.settings = list(dict.fromkeys(self._settings))
        if self._broker is not None:
            found.add(properties.observe(self._broker, self._broker_source, release=self._release))
            found.brokers = [replace(it, at=reading.last) for it in found.brokers]
        for group, where in self._groups.named.items():
            found.known_groups.setdefault(group, where)
        for kind, count in self._counts.items():
            if count > MOST_EVENTS_OF_A_KIND:
                reason = (
                    f"{count - MOST_EVENTS_OF_A_KIND} further lines of the kind {kind.value} were left out."
                )
                found.unasked.append(Unasked("file", reading.name, reason, source=reading.name))


def _shifted(at: Instant | None, by: int | None) -> Instant | None:
    return None if at is None or by is None else at + by


def _bounded(text: str) -> str:
    """Of a message of any length, what is enough to know it by: how it begins, and how it ends."""
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_BEGINNING] + text[-_LONGEST_END:]


def _quoted(entry: Entry) -> str:
    """The line as it stands, and of its stack trace the lines that name exceptions."""
    line = entry.line if len(entry.line) <= _LONGEST_TEXT else entry.line[:_LONGEST_TEXT] + "…"
    causes = [each[:_LONGEST_TEXT] for each in entry.trace if _EXCEPTION_LINE.match(each)]
    return "\n".join((line, *causes[:3]))


def read_log(lines: Iterable[str], name: str, zone: tzinfo | None = None) -> Reading:
    """All that a log says. `zone` is the one of times that name none."""
    return _Reader(name, zone).read(lines)
