"""What containers and system logs put before a line: Docker, Kubernetes, Compose, syslog, journald.

Their time mostly has a zone. So it counts, also for lines that have a time of their own.
"""

import json
import re
from collections.abc import Callable
from typing import NamedTuple

_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
_KUBERNETES = re.compile(rf"(?P<time>{_ISO}) (?:stdout|stderr) [FP] (?P<line>.*)$", re.DOTALL)
_SYSLOG = re.compile(
    rf"(?:<\d{{1,3}}>)?1? ?(?P<time>{_MONTH}|{_ISO}) \S+ [^\s:\[\]]+(?:\[\d+\])?: (?P<line>.*)$", re.DOTALL
)
_SYSLOG_5424 = re.compile(
    rf"<\d{{1,3}}>1 (?P<time>{_ISO}) \S+ \S+ \S+ \S+ (?:-|(?:\[.*?\])+) ?\ufeff?(?P<line>.*)$", re.DOTALL
)
_COMPOSE = re.compile(r"(?P<time>)[\w.-]{1,80}\s*\| (?P<line>.*)$", re.DOTALL)
_POD = re.compile(r"(?P<time>)\[(?:pod/)?[\w.-]+/[\w./-]+\] (?P<line>.*)$", re.DOTALL)
_DOCKER_TIMES = re.compile(rf"(?P<time>{_ISO}) (?P<line>.*)$", re.DOTALL)
_LARGEST_JSON = 1 << 20


class Wrapped(NamedTuple):
    time: str
    """Empty: this wrapper has none."""
    line: str


def _by(pattern: re.Pattern[str]) -> Callable[[str], Wrapped | None]:
    def unwrap(line: str) -> Wrapped | None:
        match = pattern.match(line)
        return None if match is None else Wrapped(match["time"], match["line"])

    return unwrap


def _docker(line: str) -> Wrapped | None:
    """Docker's json-file driver, and journalctl -o json."""
    if not line.startswith("{") or len(line) > _LARGEST_JSON:
        return None
    if '"log"' not in line[:100] and '"MESSAGE"' not in line:
        return None
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    if isinstance(fields.get("log"), str) and isinstance(fields.get("time"), str) and "stream" in fields:
        return Wrapped(fields["time"], fields["log"].rstrip("\n"))
    micros = fields.get("__REALTIME_TIMESTAMP")
    if isinstance(fields.get("MESSAGE"), str) and isinstance(micros, str) and micros.isdecimal():
        return Wrapped(f"{micros[:-6]}.{micros[-6:]}", fields["MESSAGE"])
    return None


WRAPPERS: dict[str, Callable[[str], Wrapped | None]] = {
    "docker": _docker,
    "kubernetes": _by(_KUBERNETES),
    "syslog 5424": _by(_SYSLOG_5424),
    "syslog": _by(_SYSLOG),
    "compose": _by(_COMPOSE),
    "pod": _by(_POD),
    "docker logs -t": _by(_DOCKER_TIMES),
}
