"""auto.offset.reset: where to begin when there is no committed offset, or it is out of range.

earliest, latest, none, or by_duration:PT1H (KIP-1106, Kafka 4.0): the first record of the last hour.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from kelpie.model.time import Instant

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)(?:[.,](?P<part>\d{1,9}))?S)?)?",
    re.IGNORECASE,
)


class Strategy(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"
    BY_DURATION = "by_duration"


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    strategy: Strategy
    duration_ms: int = 0

    def timestamp(self, now: Instant) -> int:
        """The timestamp for ListOffsets. A duration counts back from now, in each attempt."""
        assert self.strategy is not Strategy.NONE, "a policy that never resets"
        if self.strategy is Strategy.EARLIEST:
            return EARLIEST_TIMESTAMP
        if self.strategy is Strategy.LATEST:
            return LATEST_TIMESTAMP
        return max(0, now - self.duration_ms)

    @property
    def resets(self) -> bool:
        return self.strategy is not Strategy.NONE

    def __str__(self) -> str:
        if self.strategy is Strategy.BY_DURATION:
            return f"by_duration:PT{self.duration_ms / 1000:g}S"
        return self.strategy.value

    @classmethod
    def parse(cls, text: str) -> "ResetPolicy":
        """Read a value of auto.offset.reset. Raises ValueError."""
        name, colon, duration = text.strip().partition(":")
        if colon and name == Strategy.BY_DURATION:
            return cls(Strategy.BY_DURATION, _milliseconds(duration))
        if not colon and name in (Strategy.EARLIEST, Strategy.LATEST, Strategy.NONE):
            return cls(Strategy(name))
        raise ValueError(
            f"auto.offset.reset {text!r} does not exist; there are earliest, latest, none, and "
            "by_duration: with a duration behind it, as in by_duration:PT1H"
        )


def _milliseconds(text: str) -> int:
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise ValueError(
            f"{text!r} is no duration that counts back from now; write it as ISO 8601 does, as in PT1H or P7D"
        )
    days, hours, minutes, seconds = (
        int(match[unit] or 0) for unit in ("days", "hours", "minutes", "seconds")
    )
    part = int((match["part"] or "").ljust(3, "0")[:3])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + part


EARLIEST = ResetPolicy(Strategy.EARLIEST)
LATEST = ResetPolicy(Strategy.LATEST)
NONE = ResetPolicy(Strategy.NONE)
