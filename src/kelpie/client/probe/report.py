"""The results of a probe, as data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kelpie.consumer.steps import ConsumerStep
from kelpie.model.names import TopicPartition


class ChapterStatus(StrEnum):
    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


def last_failure(steps: Sequence[ConsumerStep]) -> ConsumerStep | None:
    return next((step for step in reversed(steps) if step.failed), None)


@dataclass(frozen=True, slots=True)
class ProbeChapter:
    """One part of the way: what was done and seen and, if it failed, why, and what would help."""

    name: str
    """A word for programs: cluster, offsets-partition, coordinator, group, join, positions, records."""
    title: str
    verdict: ChapterStatus
    said: tuple[str, ...] = ()
    why: str = ""
    needed: str = ""
    """Of a failure: what the answer would have to be."""
    steps: tuple[ConsumerStep, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionStart:
    """The offset at which a consumer would go on in one partition."""

    partition: TopicPartition
    offset: int
    origin: str
    """committed, reset or truncated."""
    end: int | None
    """The high watermark; None: no fetch was answered."""
    unusable: int | None = None
    """An offset at which it could not go on: out of range, or of an epoch that the leader does not know."""

    @property
    def behind(self) -> int | None:
        return None if self.end is None else max(0, self.end - self.offset)


@dataclass(slots=True)
class ProbeReport:
    group: str | None
    topics: tuple[str, ...] = ()
    chapters: list[ProbeChapter] = field(default_factory=list)
    starts: tuple[PartitionStart, ...] = ()
    reached: bool = False
    """Whether a consumer gets to its next record, or to the end of the log, in every partition."""

    @property
    def failure(self) -> ProbeChapter | None:
        """The first chapter that failed."""
        return next((chapter for chapter in self.chapters if chapter.verdict is ChapterStatus.FAILED), None)
