"""What brokers and logs say of a group's coordinator: which broker it is, and what it answered."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from kelpie.cluster.view import ONE_SURVEY_MS
from kelpie.doctor.case import Case
from kelpie.doctor.finding import Evidence, quotes
from kelpie.errors import ErrorCode, describe
from kelpie.model.time import Instant
from kelpie.model.words import counted
from kelpie.observations import CoordinatorAnswer, Event
from kelpie.observations.earlier import DESCRIBE_GROUPS

FIND_COORDINATOR = "FindCoordinator"
AUTHORISATION_ERRORS = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)


def lookups(case: Case) -> dict[int | None, CoordinatorAnswer]:
    """What every broker answered that was asked for the coordinator, the last time that they were asked."""
    newest = {row.told_by: row for row in case.answers if row.asked == FIND_COORDINATOR}
    last = max([row.at or 0 for row in newest.values()], default=0)
    return {told_by: row for told_by, row in newest.items() if (row.at or 0) >= last - ONE_SURVEY_MS}


def answer_evidence(rows: Iterable[CoordinatorAnswer]) -> list[Evidence]:
    return [
        _quoted_answer((row.asked, row.error, row.node_id, row.address), row.source, row.at) for row in rows
    ]


@lru_cache(maxsize=1024)
def _quoted_answer(said: tuple[str, ErrorCode, int, str], source: str, at: Instant | None) -> Evidence:
    """A broker is asked for thousands of groups at once, and mostly answers the same of each."""
    asked, error, node_id, address = said
    answer = describe(error) if error else f"broker {node_id:d} ({address or 'no address'})"
    return Evidence(f"{asked} → {answer}", source, at)


def last_reply(case: Case) -> CoordinatorAnswer | None:
    """The last answer of the group's coordinator, or of a broker taken for it. A refusal outweighs others."""
    return max(_replies(case), key=lambda row: (row.at or 0, row.error is not ErrorCode.NONE), default=None)


def last_replies(case: Case) -> list[CoordinatorAnswer]:
    """All of the last survey."""
    replies = sorted(_replies(case), key=lambda row: row.at or 0)
    return [row for row in replies if (row.at or 0) >= (replies[-1].at or 0) - ONE_SURVEY_MS]


def same_since(case: Case, error: ErrorCode) -> Instant | None:
    """Since when the coordinator has answered with this error and nothing else; None if it does not now.

    A commit of the group since then shows that it was served in between.
    """
    served = max((row.at or 0 for rows in case.commits.values() for row in rows), default=0)
    since = None
    for row in sorted(_replies(case), key=lambda row: (row.at or 0, row.error is error), reverse=True):
        if row.error is not error or (row.at or 0) <= served:
            break
        since = row.at
    return since


def _replies(case: Case) -> list[CoordinatorAnswer]:
    """Answers to other questions than who is the coordinator; a description is one, too."""
    return [answer for answer in case.answers if answer.asked != FIND_COORDINATOR] + [
        CoordinatorAnswer(
            case.group, DESCRIBE_GROUPS, state.error, state.coordinator, at=state.at, source=state.source
        )
        for state in case.states
    ]


def first_and_last(events: Sequence[Event]) -> list[Evidence]:
    """Of many lines that say the same: the first one, how many there are, and the last one."""
    last = events[-1]
    count = f"{counted(len(events), 'such line')}, the last: {last.text}"
    return quotes(events[:1]) + ([Evidence.of(last, count)] if len(events) > 1 else [])
