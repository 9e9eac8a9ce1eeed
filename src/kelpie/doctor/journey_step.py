"""One step of a group's way to the next record."""

from dataclasses import dataclass, field
from enum import StrEnum

from kelpie.doctor.finding import Finding


class Passage(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class JourneyStep:
    name: str
    passage: Passage
    text: str
    findings: list[Finding] = field(default_factory=list)
