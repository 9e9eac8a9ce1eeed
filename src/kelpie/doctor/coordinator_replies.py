"""Answers about a group: which broker is its coordinator, and what the coordinator said."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kelpie.cluster.view import ONE_SURVEY_MS
from kelpie.doctor.case import Case
from kelpie.doctor.finding import Evidence
from kelpie.errors import ErrorCode, describe
from kelpie.model.time import Instant
from kelpie.observations import CoordinatorAnswer

FIND_COORDINATOR = "FindCoordinator"


class CoordinatorReply(NamedTuple):
    at: Instant
    error: ErrorCode
    asked: str
    told_by: int | None
    source: str

    @property
    def evidence(self) -> Evidence:
        return Evidence(f"{self.asked} → {describe(self.error)}", self.source, self.at or None)


def lookups(case: Case) -> dict[int | None, CoordinatorAnswer]:
    """What every broker answered that was asked for the coordinator, the last time that they were asked."""
    newest = {row.told_by: row for row in case.answers if row.asked == FIND_COORDINATOR}
    last = max((row.at or 0 for row in newest.values()), default=0)
    return {told_by: row for told_by, row in newest.items() if (row.at or 0) >= last - ONE_SURVEY_MS}


def lookup_evidence(rows: Iterable[CoordinatorAnswer]) -> list[Evidence]:
    return [
        Evidence(
            f"{row.asked} → "
            + (describe(row.error) if row.error else f"broker {row.node_id} ({row.address or 'no address'})"),
            row.source,
            row.at,
        )
        for row in rows
    ]


def last_reply(case: Case) -> CoordinatorReply | None:
    """What the group's coordinator, or who was taken for it, answered last. Refusals outweigh the rest."""
    return max(_replies(case), key=lambda reply: (reply.at, reply.error is not ErrorCode.NONE), default=None)


def last_replies(case: Case) -> list[CoordinatorReply]:
    """All of the last survey."""
    replies = sorted(_replies(case), key=lambda reply: reply.at)
    return [reply for reply in replies if reply.at >= replies[-1].at - ONE_SURVEY_MS]


def _replies(case: Case) -> Iterator[CoordinatorReply]:
    for answer in case.answers:
        if answer.asked != FIND_COORDINATOR:
            yield CoordinatorReply(answer.at or 0, answer.error, answer.asked, answer.told_by, answer.source)
    for state in case.states:
        yield CoordinatorReply(state.at or 0, state.error, "DescribeGroups", state.coordinator, state.source)
