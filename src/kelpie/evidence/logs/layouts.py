"""Where a line's own message begins, whatever stands before it.

A head has a time, a level, a thread, a logger, in nearly any order:

    [2026-11-15 20:56:40,123] INFO msg (kafka.server.KafkaServer)         Kafka's own log4j pattern
    2026-11-15 20:56:40,123 INFO kafka.coordinator msg                    Python
    2026-11-15T20:56:40.123Z  INFO 1 --- [main] o.a.k.ConsumerConfig : msg    Spring Boot
    18:25:20.457 [main] DEBUG o.a.k.c.c.i.AbstractCoordinator - msg       logback
    26/11/15 20:56:40 INFO ConsumerCoordinator: msg                       Spark
    INFO:kafka.coordinator:msg                                            Python without a format
    %4|1794793788.619|MAXPOLL|rdkafka#consumer-1| [thrd:main]: msg        librdkafka
    {"@timestamp": "…", "level": "INFO", "message": "…"}                  JSON, one object a line
    time=2026-11-15T20:56:40.123Z level=INFO msg="…" group=g              logfmt, as Go's slog
    [sarama] 2026/11/15 20:56:40 msg                                      Go's standard logger
    [INFO] msg; group: g                                                  franz-go's own logger

A line without a head belongs to the one before it, as a stack trace does. What containers and system logs put
in front of the head is taken off first (`wrappers`).
"""

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from kelpie.evidence.logs.logfmt import LOGFMT_BEGINS, parse_logfmt

_LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE"
_TIME = (
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)(?![\d:]))?"
    r"|\d\d:\d\d:\d\d[.,]\d{1,9}"
    r"|\d\d/\d\d/\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"|\d\d?[ /-][A-Z][a-z]{2}[ /-]\d{4}[ :T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"|[A-Z][a-z]{2} +\d\d?(?: \d{4})? \d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"|\d{10}\.\d{3,9}|\d{13}"
)
# A thread in brackets, but not what Kafka's own messages begin with: "[Consumer clientId=c, groupId=g] ",
# "[Controller 0]: ", "[Kafka Server 0], ".
_BRACKETED = r"(?:\[[^\]\[=]{0,200}\](?![:,])\s*)"
# A logger's name is dotted, or is followed by a dash or a colon.
_LOGGER = r"(?:(?P<logger>[\w$]+(?:\.[\w$-]+)+|[\w$.:-]{1,200}(?=\s+-\s)|[A-Z][\w$]*(?=\s*:\s))(?=[\s:]))"
_AFTER_LEVEL = (
    rf"[\]:|]?\s*(?:\d+\s+---\s*)?{_BRACKETED}{{0,3}}{_LOGGER}?\s*{_BRACKETED}{{0,2}}(?:[-:|]+\s+)?"
)

_TIME_FIRST = re.compile(
    rf"\[?(?P<time>{_TIME})\]?[\s:|,-]*+(?:[A-Z][\w-]{{0,20}}\s+(?=\[))?{_BRACKETED}{{0,3}}"
    rf"(?:[\w$]+(?:\.[\w$-]+)+\s+|[\w$.-]{{1,100}}\s+-\s+)?\[?(?P<level>{_LEVELS})\b{_AFTER_LEVEL}(?P<message>.*)$",
    re.DOTALL,
)
_LEVEL_FIRST = re.compile(
    rf"\[?(?P<level>{_LEVELS})\b[\]:|]?\s*\[?(?P<time>{_TIME})\]?[\s:|,-]*+{_BRACKETED}{{0,3}}"
    rf"{_LOGGER}?\s*{_BRACKETED}{{0,2}}(?:[-:|]+\s+)?(?P<message>.*)$",
    re.DOTALL,
)
_NO_TIME = re.compile(
    rf"{_BRACKETED}?(?P<level>{_LEVELS}) +(?P<logger>[\w$]+(?:\.[\w$-]+)+) - (?P<message>.*)$", re.DOTALL
)
_PYTHON_PLAIN = re.compile(rf"(?P<level>{_LEVELS}):(?P<logger>[\w.]+):(?P<message>.*)$", re.DOTALL)
_LIBRDKAFKA = re.compile(
    r"%(?P<level>[0-7])\|(?P<time>\d{10}\.\d{1,9})\|(?P<facility>[A-Z_0-9]+)\|(?P<name>[^|]*)\| "
    r"(?:\[thrd:(?P<thread>.*?)\]: )?(?P<message>.*)$",
    re.DOTALL,
)
# Go's standard logger: a prefix that often names the library, a date with slashes, perhaps a file and a line.
_GO = re.compile(
    r"(?:\[?[\w.-]{1,40}\]?:? ?)?(?P<time>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) "
    r"(?:[\w./-]{1,200}\.go:\d{1,6}: )?(?:\[(?i:sarama)\] )?(?P<message>.*)$",
    re.DOTALL,
)
_LEVEL_ALONE = re.compile(r"\[(?P<level>ERROR|WARN|INFO|DEBUG)\] (?P<message>.*)$", re.DOTALL)
# What confluent_kafka hands to a logger of Python: "FATAL [app#consumer-1] [thrd:main]: message". The name of
# that logger, if it has no dots, is still in front of it.
_RELAYED = re.compile(
    r"(?:[\w.-]{1,100}:? )?(?P<facility>[A-Z_0-9]{2,30}) \[(?P<name>[^\]]*#(?:consumer|producer)-\d{1,9})\] "
    r"(?:\[thrd:.*?\]: )?(?P<message>.*)$",
    re.DOTALL,
)
_LEVEL_WORDS = frozenset(("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"))
_LOGGER_AND_THREAD = re.compile(r" \((?P<logger>[\w.$]+)\) \[[^\[\]]*\]$")
_LONGEST_END = 300
# What Kafka's own messages begin with, for layouts that are like none of the above.
_KAFKA_PREFIXES = ("[Consumer ", "[GroupCoordinator ", "[GroupMetadataManager ", "[Group Metadata Manager ")
_FURTHEST_PREFIX = 300
_JSON_TIME = (
    "@timestamp",
    "timestamp",
    "time",
    "ts",
    "asctime",
    "date",
    "datetime",
    "eventTime",
    "timeMillis",
)
_LOGFMT_TIME = (*_JSON_TIME, "t")
_JSON_LEVEL = ("level", "severity", "levelname", "log.level", "loglevel", "lvl")
_JSON_LOGGER = ("logger", "logger_name", "loggerName", "log.logger", "name", "class")
_JSON_MESSAGE = ("message", "msg", "log", "MESSAGE", "text", "event", "short_message")
_JSON_TRACE = ("stack_trace", "stackTrace", "exception", "exc_info", "thrown", "error.stack_trace")
_LARGEST_JSON = 1 << 20
_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class Head(NamedTuple):
    """A line, taken apart."""

    time: str
    """Empty: the layout has none."""
    level: str
    logger: str
    message: str
    facility: str = ""
    """librdkafka's tag: "MAXPOLL"."""
    name: str = ""
    """librdkafka's name of the instance: "app#consumer-1"."""
    trace: str = ""
    """A stack trace that came within the line, in JSON."""
    fields: Mapping[str, Any] = _NO_FIELDS
    """All names and values of a line of JSON or logfmt."""


def parse_head(line: str) -> Head | None:
    """The parts of a line, or None for a line that has no head."""
    first = line[:1]
    if first == "%":
        return _librdkafka(line)
    if first == "{":
        return _json(line)
    if first in (" ", "\t", "", "}", "*"):
        return None
    if first == "[" and line[24:26] == "] " and line[5:6] == line[8:9] == "-":
        level, _, message = line[26:].partition(" ")  # Kafka's own pattern, and most files: no search needed.
        if level in _LEVEL_WORDS:
            return _with_logger_behind(line[1:24], level, message.lstrip())
    if line.startswith(LOGFMT_BEGINS):
        return _logfmt(line)
    match = _TIME_FIRST.match(line) or _LEVEL_FIRST.match(line)
    if match is not None:
        message = match["message"]
        if not match["logger"]:
            return _with_logger_behind(match["time"], match["level"], message)
        return Head(match["time"], match["level"], match["logger"], _from_prefix(message))
    match = _PYTHON_PLAIN.match(line) or _NO_TIME.match(line)
    if match is not None:
        return Head("", match["level"], match["logger"], match["message"])
    match = _GO.match(line)
    if match is not None:
        return Head(match["time"], "", "", match["message"])
    match = _LEVEL_ALONE.match(line)
    return None if match is None else Head("", match["level"], "", match["message"])


def relayed(head: Head) -> Head:
    """A line of librdkafka that went through a logger of Python, taken apart; any other head as it is."""
    match = _RELAYED.match(head.message) if "#" in head.message else None
    if match is None:
        return head
    return Head(
        head.time, head.level, "librdkafka", match["message"], match["facility"], match["name"], head.trace
    )


def _with_logger_behind(time: str, level: str, message: str) -> Head:
    logger = ""
    if message.endswith(")"):
        place = message.rfind(" (")
        if place >= 0 and " " not in message[place + 2 :]:
            message, logger = message[:place], message[place + 2 : -1]
    elif message.endswith("]"):
        end = _LOGGER_AND_THREAD.search(message, max(0, len(message) - _LONGEST_END))
        if end is not None:
            message, logger = message[: end.start()], end["logger"]
    return Head(time, level, logger, _from_prefix(message))


def _from_prefix(message: str) -> str:
    if not message.startswith("["):
        for prefix in _KAFKA_PREFIXES:
            place = message.find(prefix, 0, _FURTHEST_PREFIX)
            if place > 0:
                return message[place:]
    return message


def _librdkafka(line: str) -> Head | None:
    match = _LIBRDKAFKA.match(line)
    if match is None:
        return None
    return Head(
        match["time"], match["level"], "librdkafka", match["message"], match["facility"], match["name"]
    )


def _json(line: str) -> Head | None:
    if len(line) > _LARGEST_JSON:
        return None
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    message = _first(fields, _JSON_MESSAGE) if isinstance(fields, dict) else None
    if message is None:
        return None
    inner = parse_head(message) if not message.startswith("{") else None
    time = _first(fields, _JSON_TIME) or ""
    if inner is not None:
        return inner._replace(time=time or inner.time, fields=fields)
    return Head(
        time,
        (_first(fields, _JSON_LEVEL) or "").upper(),
        _first(fields, _JSON_LOGGER) or "",
        message,
        trace=_first(fields, _JSON_TRACE) or "",
        fields=fields,
    )


def _logfmt(line: str) -> Head | None:
    fields = parse_logfmt(line)
    message = _first(fields, _JSON_MESSAGE) if fields else None
    if fields is None or message is None:
        return None
    level = (_first(fields, _JSON_LEVEL) or "").upper()
    return Head(_first(fields, _LOGFMT_TIME) or "", level, "", message, fields=fields)


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return f"{value:.3f}" if isinstance(value, float) else str(value)
    return None
