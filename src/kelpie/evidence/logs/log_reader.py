"""One log file, from its lines to events."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo

from kelpie.evidence import properties
from kelpie.evidence.logs import (
    franz_go,
    java_broker,
    java_client,
    java_coordinator,
    java_frameworks,
    kafka_python,
    kafkajs,
    librdkafka,
    sarama,
    zookeeper_consumer,
)
from kelpie.evidence.logs.attribution import MOST_GROUPS, Groups
from kelpie.evidence.logs.entries import Entries, LogEntry
from kelpie.evidence.logs.exceptions import find_exception
from kelpie.evidence.logs.hints import NO_HINTS, Hints, LogLayout
from kelpie.evidence.logs.matching import (
    Fields,
    Meaning,
    Message,
    TemplateTable,
    facts_of,
    pattern,
    split_prefix,
)
from kelpie.evidence.logs.pauses import limits_of, with_pauses
from kelpie.evidence.logs.times import Clock, Float, Stamp
from kelpie.model.time import Instant
from kelpie.observations import Event, EventKind, Observations, Setting, Unasked

MOST_EVENTS_OF_A_KIND = 50_000
MOST_SETTINGS = 100_000
_MOST_QUOTED = 100_000_000
"""Characters of lines that the events of one log quote in full."""
_SHORT_TEXT = 300
_LONGEST_TEXT = 4000
_LONGEST_BEGINNING, _LONGEST_END = 6000, 2000
_LONGEST_MESSAGE = _LONGEST_BEGINNING + _LONGEST_END
_GROUP_BEGINS = re.compile(r'\bGroup "')
_GROUP_ENDS = re.compile(r'"(?=[: ])')
_EXCEPTION_LINE = re.compile(r"^(?:Caused by: )?[\w.$]*(?:Exception|Error)\b")
_VERSION = re.compile(r"^Kafka version ?: ?(\d[\w.-]*)")
_FOR_GROUP = re.compile(r"\bfor group (\S+?)(?=[\s:;,]|\.?$)")


def _arrived(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    return [] if meaning.details.get("records", "0") == "0" else [meaning]


_CONSUMED = (
    pattern(EventKind.CONSUMED, "Processed a total of {records} messages", then=_arrived),
    pattern(
        EventKind.CONSUMED,
        "Fetch {*} at offset {offset} for partition {tp} returned fetch data {*}recordsSizeInBytes={records}"
        ")",
        then=_arrived,
    ),
)
TABLE = TemplateTable(
    (
        *java_client.PATTERNS,
        *java_coordinator.PATTERNS,
        *java_broker.PATTERNS,
        *kafka_python.PATTERNS,
        *java_frameworks.PATTERNS,
        *sarama.PATTERNS,
        *franz_go.PATTERNS,
        *kafkajs.PATTERNS,
        *zookeeper_consumer.PATTERNS,
        *_CONSUMED,
    )
)


@dataclass(slots=True)
class LogReading:
    """What one log says."""

    name: str
    observations: Observations = field(default_factory=Observations)
    lines: int = 0
    heads: int = 0
    """How many lines had a time, a level or the like. None at all: it is perhaps no log."""
    unknown: int = 0
    """How many entries, lines with what belongs to them, mean nothing here."""
    first: Instant | None = None
    last: Instant | None = None
    missing: Float = Float.FIXED
    """YEAR or DATE: its lines lack that, and so all its times are off by the same amount."""

    def shift(self, by: int | None) -> None:
        """Corrects the times of a dateless log. None: the date is unknown, and the log loses its times."""
        self.missing = Float.FIXED
        self.first, self.last = _shifted(self.first, by), _shifted(self.last, by)
        rows = self.observations
        rows.events = [replace(event, at=_shifted(event.at, by)) for event in rows.events]
        rows.brokers = [replace(broker, at=_shifted(broker.at, by)) for broker in rows.brokers]


class LogReader:
    """Reads one file, entry by entry; what only the end of the file can decide is done at the end.

    `most` bounds how many events of a kind are kept.
    """

    def __init__(self, name: str, zone: tzinfo | None = None, *, most: int = MOST_EVENTS_OF_A_KIND) -> None:
        self.reading = LogReading(name)
        self._most = most
        self.clock = Clock(zone)
        self.groups = Groups()
        self.connectors = zookeeper_consumer.Connectors()
        self._events: list[tuple[Event, Stamp | None]] = []
        self._counts: Counter[EventKind] = Counter()
        self._quoted = 0
        self.left_out: Counter[EventKind] = Counter()
        self.gone: set[int] = set()
        self.settings: list[Setting] = []
        self.release = ""
        self.broker: dict[str, str] | None = None
        self.broker_source = ""
        self.first: Stamp | None = None
        self.last_time = ""
        self.in_sequence = False
        self.times_completed = False

    def read(self, lines: Iterable[str], layout: LogLayout | None = None) -> LogReading:
        entries = Entries(layout)
        for entry in entries.read(lines):
            self.entry(entry)
        self.reading.lines, self.reading.heads = entries.lines, entries.heads
        self.finish()
        return self.reading

    def entry(self, entry: LogEntry) -> None:
        head = entry.head
        if head.facility:
            who, text = "", _bounded(head.message)
            table = librdkafka.TABLES.get(head.facility)
        else:
            who, text = split_prefix(_bounded(head.message))
            table = TABLE
        trace = "\n".join(map(_bounded, entry.trace)) if entry.trace else ""
        message = Message(who, text, trace, head)
        meanings = table.find(message) if table is not None else None
        if meanings is None:
            meanings = self._other(entry, message)
        self.reading.unknown += not meanings
        facts = self._facts(entry, message)
        stamp = self._time(entry, needed=bool(meanings))
        for meaning in meanings or ():
            self._event(meaning, facts, entry, stamp)

    def _time(self, entry: LogEntry, *, needed: bool) -> Stamp | None:
        """Most lines mean nothing, and their times are not read; but see `Clock.read`."""
        if not entry.time:
            return None
        self.last_time = entry.time
        has_moment = not self.times_completed and "TimeMs" in entry.head.message
        if not (needed or has_moment or self.in_sequence or self.first is None):
            return None
        stamp = self.clock.read(entry.time)
        if stamp is not None:
            self.first = self.first or stamp
            self.in_sequence = self.in_sequence or stamp.float in (Float.YEAR, Float.DATE)
            if has_moment:
                self.times_completed = self.clock.complete_from(stamp, entry.head.message)
        return stamp

    def _other(self, entry: LogEntry, message: Message) -> Sequence[Meaning] | None:
        """Dumps of configurations, versions, exceptions in other people's words."""
        text = message.text
        if text.startswith(properties.CONSUMER_DUMP):
            dump = properties.read_dump(entry.trace)
            where = self._where(entry)
            if len(self.settings) < MOST_SETTINGS:
                self.settings += properties.settings_of_group(dump, where)
            if dump.get("group.id", "null") != "null":
                self.groups.note(dump["group.id"], dump.get("client.id"), f"group.id in {where}")
        elif text.startswith(properties.BROKER_DUMP):
            if self.broker is None:
                self.broker, self.broker_source = properties.read_dump(entry.trace), self._where(entry)
        elif text.startswith("Kafka version"):
            match = _VERSION.match(text)
            self.release = match[1] if match is not None else self.release
        elif zookeeper_consumer.OVERRIDDEN in text or text.startswith(zookeeper_consumer.CONNECTING):
            noted = self.connectors.note(message, self._where(entry))
            self.settings += noted if len(self.settings) < MOST_SETTINGS else ()
        elif "Exception" in text or "Exception" in message.trace:
            return find_exception(message)
        elif self.groups.are_unknown and entry.head.logger.startswith("kafka."):
            match = _FOR_GROUP.search(text)
            if match is not None:
                self.groups.guess(match[1], self._where(entry))
        return None

    def _facts(self, entry: LogEntry, message: Message) -> Fields:
        if not entry.head.facility:
            facts = facts_of(message.who)
            if "group" in facts:
                client = str(facts.get("client_id", ""))
                self.groups.note(str(facts["group"]), client, self._where(entry))
            return facts
        instance = entry.head.name
        if instance not in self.groups.of_client:
            group = _librdkafka_group(message.text)
            if group is not None:
                self.groups.note_instance(group, instance, self._where(entry))
        return {"client_id": instance.partition("#")[0]} if instance else {}

    def _event(self, meaning: Meaning, facts: Fields, entry: LogEntry, stamp: Stamp | None) -> None:
        if self._repeats(meaning):
            return
        self._counts[meaning.kind] += 1
        if self._counts[meaning.kind] > self._most:
            self.left_out[meaning.kind] += 1
            return
        fields = {**facts, **meaning.fields}
        details = dict(meaning.details)
        if entry.head.name:
            details["instance"] = entry.head.name
        if "group" in fields and not meaning.kind.value.startswith(zookeeper_consumer.OF_ZOOKEEPER):
            self.groups.note(str(fields["group"]), details.get("instance"), self._where(entry))
        self._keep(meaning.kind, fields, details, entry, stamp)

    def _keep(
        self, kind: EventKind, fields: Fields, details: dict[str, str], entry: LogEntry, stamp: Stamp | None
    ) -> None:
        where, text = self._where(entry), quoted(entry)
        self._quoted += len(text)
        if self._quoted > _MOST_QUOTED:
            text = text[:_SHORT_TEXT]
        event = Event(kind, None, where, text, details=details, **fields)  # type: ignore[arg-type]
        self._events.append((event, stamp))

    def _offset(self, stamp: Stamp) -> int:
        return self.clock.offset.get(stamp.float, 0)

    def _repeats(self, meaning: Meaning) -> bool:
        """A controller without its peers says for every partition that they are gone: once is enough."""
        node = meaning.fields.get("node")
        if meaning.kind is EventKind.BROKER_UNFENCED and isinstance(node, int):
            self.gone.discard(node)
        elif meaning.kind is EventKind.BROKER_FENCED and isinstance(node, int):
            repeated = node in self.gone and meaning.fields.get("reason") == java_broker.GONE
            self.gone.add(node)
            return repeated
        return False

    def _where(self, entry: LogEntry) -> str:
        return f"{self.reading.name}:{entry.number}"

    def last(self) -> Stamp | None:
        """When the last line that has a time was written."""
        return self.clock.read(self.last_time)

    def finish(self) -> None:
        reading, observations = self.reading, self.reading.observations
        events = [
            replace(event, at=None if stamp is None else stamp.at + self._offset(stamp))
            for event, stamp in self._events
        ]
        observations.events = with_pauses(self.groups.attribute(events), limits_of(self.settings))
        last = self.last()
        reading.first = None if self.first is None else self.first.at + self._offset(self.first)
        reading.last = None if last is None else last.at + self._offset(last)
        if self.first is not None and self.clock.fixed(self.first) is None:
            reading.missing = self.first.float
        observations.settings = list(dict.fromkeys(self.settings))
        if self.broker is not None:
            observations.add(properties.observe(self.broker, self.broker_source, release=self.release))
            observations.brokers = [replace(broker, at=reading.last) for broker in observations.brokers]
        for group, where in self.groups.named.items():
            observations.known_groups.setdefault(group, where)
        left_out = [
            f"{count} further lines of the kind {kind.value}" for kind, count in self.left_out.items()
        ]
        if len(self.groups.sure) >= MOST_GROUPS:
            left_out.append(f"Groups after the first {MOST_GROUPS:,}")
        if len(self.settings) >= MOST_SETTINGS:
            left_out.append(f"Settings after the first {MOST_SETTINGS:,}")
        for what in left_out:
            reason = f"{what} were left out."
            observations.unasked.append(Unasked("file", reading.name, reason, source=reading.name))


def _shifted(at: Instant | None, by: int | None) -> Instant | None:
    return None if at is None or by is None else at + by


def _bounded(text: str) -> str:
    """Of a message of any length, what is enough to know it by: how it begins, and how it ends."""
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_BEGINNING] + text[-_LONGEST_END:]


def _librdkafka_group(text: str) -> str | None:
    """The group that a message of librdkafka names."""
    begin = _GROUP_BEGINS.search(text)
    end = None if begin is None else _GROUP_ENDS.search(text, begin.end() + 1)
    return None if begin is None or end is None else text[begin.end() : end.start()]


def quoted(entry: LogEntry) -> str:
    """The line as it stands, and of its stack trace the lines that name exceptions."""
    line = entry.line if len(entry.line) <= _LONGEST_TEXT else entry.line[:_LONGEST_TEXT] + "…"
    if not entry.trace:
        return line
    causes = [cause[:_LONGEST_TEXT] for cause in entry.trace if _EXCEPTION_LINE.match(cause)]
    return "\n".join((line, *causes[:3]))


def read_log(lines: Iterable[str], name: str, hints: Hints = NO_HINTS) -> LogReading:
    """All that a log says."""
    return LogReader(name, hints.zone).read(lines, hints.layout_of(name))
