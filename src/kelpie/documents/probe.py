"""`kelpie probe --json`: the way of a consumer to its next record."""

from typing import Literal

from kelpie.client.probe import ProbeChapter, ProbeReport
from kelpie.consumer.steps import ConsumerStep
from kelpie.documents.declaring import TypedDict, document

Verdict = Literal["ok", "failed", "skipped"]


@document
class StepData(TypedDict):
    at: int
    """Milliseconds since 1970."""
    what: str
    asked_of: str
    """Empty: there was no request; the consumer decided by itself."""
    request: str
    answer: str
    elapsed_ms: int
    follows: str
    """What the consumer did then."""
    failed: bool
    needed: str
    """Of a failure: the answer that lets a consumer go on."""
    times: int
    """How often it happened."""
    last_at: int


@document
class ChapterData(TypedDict):
    name: str
    """cluster, offsets-partition, coordinator, group, join, positions or records."""
    title: str
    verdict: Verdict
    said: list[str]
    why: str
    """Of a failure."""
    needed: str
    """Of a failure: what the answer would have to be."""
    steps: list[StepData]


@document
class PositionData(TypedDict):
    topic: str
    partition: int
    offset: int
    """Where a consumer would go on."""
    origin: str
    """committed, reset or truncated."""
    unusable: int | None
    """An offset at which it could not go on: out of range, or of an epoch that the leader does not know."""
    end: int | None
    """The high watermark."""
    behind: int | None


@document
class ProbeDocument(TypedDict):
    """The way of a consumer to its next record, step by step."""

    version: Literal[1]
    group: str | None
    topics: list[str]
    reached: bool
    """Whether a consumer gets to its next record, or to the end of the log, in every partition."""
    failed: str | None
    """The name of the first chapter that failed."""
    chapters: list[ChapterData]
    positions: list[PositionData]


def probe_document(report: ProbeReport) -> ProbeDocument:
    failure = report.failure
    return {
        "version": 1,
        "group": report.group,
        "topics": list(report.topics),
        "reached": report.reached,
        "failed": None if failure is None else failure.name,
        "chapters": [_chapter(chapter) for chapter in report.chapters],
        "positions": [
            {
                "topic": start.partition.topic,
                "partition": start.partition.partition,
                "offset": start.offset,
                "origin": start.origin,
                "unusable": start.unusable,
                "end": start.end,
                "behind": start.behind,
            }
            for start in report.starts
        ],
    }


def _chapter(chapter: ProbeChapter) -> ChapterData:
    return {
        "name": chapter.name,
        "title": chapter.title,
        "verdict": chapter.verdict.value,
        "said": list(chapter.said),
        "why": chapter.why,
        "needed": chapter.needed,
        "steps": [_step(step) for step in chapter.steps],
    }


def _step(step: ConsumerStep) -> StepData:
    return {
        "at": step.at,
        "what": step.kind.value,
        "asked_of": step.asked_of,
        "request": step.request,
        "answer": step.answer,
        "elapsed_ms": step.elapsed_ms,
        "follows": step.follows,
        "failed": step.failed,
        "needed": step.needed,
        "times": step.times,
        "last_at": step.last_at,
    }
