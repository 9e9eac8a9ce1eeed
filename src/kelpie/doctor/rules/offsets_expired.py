"""KLP302 offsets-expired

What it sees: the group had committed offsets, and the coordinator removed them
because they were too old.

Why it matters: when its consumers come back, they start where auto.offset.reset
says: latest, the default, skips everything that has come since; earliest reads
all that is kept once more. No client logs it.

How it decides: the history in the offsets topic has a commit and then its
removal, and between them lies at least the retention of offsets
(offsets.retention.minutes, 7 days by default, or what the commit itself asked
for). A removal before its time was made by hand, or came with the deletion of
the topic, and is not reported. Since 2.1 offsets expire only while no member is in
the group, or for topics that it no longer subscribes to.

What to do: set the offsets back to where they were: the finding has the
numbers. If the group may be silent for so long, raise offsets.retention.minutes
above its longest pause.

When it is wrong: offsets that were deleted by hand after the retention had
passed look the same.

Reproduce: kelpie lab run offsets-expired
"""

from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.position_words import HISTORY, MOST_EVIDENCE, records, reset, some
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import duration, moment
from kelpie.observations import Commit, Event, EventKind

_MINUTE_MS = 60_000
_DEFAULT_MINUTES = 7 * 24 * 60
_SAME_MOMENT_MS = 60_000


class _Expired(NamedTuple):
    name: TopicPartition
    commit: Commit
    removal: Commit
    after: Commit | None
    """The first commit since."""


def judge(case: Case) -> Judgement:
    expired, unclear = [], []
    for name, history in sorted(case.commits.items()):
        if case.is_gone(name):
            continue
        commit, removal, after = _last_removal(history)
        if removal is None:
            continue
        if commit is None:
            if after is None and not case.has_offset(name):
                unclear.append(name)
        elif _is_expiry(case, commit, removal):
            expired.append(_Expired(name, commit, removal, after))
    read = case.reads
    topics = {name.topic for name in read.partitions} if case.members else None
    expired = [expiry for expiry in expired if topics is None or expiry.name.topic in topics]
    told = [
        event
        for event in case.events
        if event.kind is EventKind.OFFSETS_EXPIRED and event.group == case.group
    ]
    open_still = [expiry for expiry in expired if expiry.after is None and not case.has_offset(expiry.name)]
    if open_still:
        return _found(case, open_still, told)
    if expired:
        return _over(case, [expiry for expiry in expired if expiry.after is not None] or expired)
    if told and not _committed_since(case, told[-1]):
        return _by_log(case, told)
    if unclear:
        return undetermined(
            f"whether the offsets of {some(unclear)} expired or were deleted: their commits are gone"
        )
    if case.history_from is None and not case.commits and not _all_there(case):
        return undetermined(HISTORY)
    return ABSENT


def _last_removal(history: tuple[Commit, ...]) -> tuple[Commit | None, Commit | None, Commit | None]:
    """The last removal, the commit that it removed and the first one after it."""
    at = max((index for index, row in enumerate(history) if row.removed), default=None)
    if at is None:
        return None, None, None
    before = next((row for row in reversed(history[:at]) if not row.removed), None)
    first = next((index for index in range(at, -1, -1) if not history[index].removed), -1) + 1
    return before, history[first], next(iter(history[at + 1 :]), None)


def _is_expiry(case: Case, commit: Commit, removal: Commit) -> bool:
    if removal.at is None or commit.at is None or _was_deleted(case, removal.at):
        return False
    if commit.expires is not None:
        return removal.at >= commit.expires
    return removal.at - commit.at >= _retention_ms(case)


def _retention_ms(case: Case) -> int:
    minutes = case.cluster.setting("offsets.retention.minutes") or ""
    return int(minutes) * _MINUTE_MS if minutes.isdigit() else _DEFAULT_MINUTES * _MINUTE_MS


def _was_deleted(case: Case, at: Instant) -> bool:
    return any(
        event.kind is EventKind.GROUP_REMOVED
        and "delete" in event.reason
        and event.at is not None
        and abs(event.at - at) <= _SAME_MOMENT_MS
        for event in case.events
    )


def _all_there(case: Case) -> bool:
    """Nothing that the group reads lacks its offset, so nothing of it can have expired."""
    names = case.reads.partitions
    return case.offsets_are_known and bool(names) and all(case.has_offset(name) for name in names)


def _committed_since(case: Case, event: Event) -> bool:
    if case.committed and any(case.has_offset(name) for name in case.committed):
        return True
    return any((row.at or 0) > (event.at or 0) for history in case.commits.values() for row in history)


def _found(case: Case, expired: list[_Expired], told: list[Event]) -> Finding:
    names = [expiry.name for expiry in expired]
    since = min(expiry.removal.at for expiry in expired if expiry.removal.at is not None)
    skipped = []
    for expiry in expired:
        end = case.track(expiry.name).end
        if end is not None:
            skipped.append(max(0, end.latest - expiry.commit.offset))
    first = expired[0]
    pause = duration((first.removal.at or 0) - (first.commit.at or 0))
    lost = (
        f"latest, the default, skips {records(sum(skipped))}"
        if skipped
        else "latest, the default, skips what came since"
    )
    return RULE.finding(
        Severity.WARNING,
        case.group,
        f"The committed offsets of group {case.group} in {some(names)} expired at {moment(since)}, {pause} "
        "after the last commit.",
        why=f"Consumers that come back start where auto.offset.reset says: {lost}; earliest reads again all "
        "that is kept.",
        evidence=_evidence(expired, told),
        remedies=[
            *(
                reset(
                    case,
                    f"Set {expiry.name} back to where it was.",
                    [expiry.name],
                    f"--to-offset {expiry.commit.offset}",
                )
                for expiry in expired[:MOST_EVIDENCE]
            ),
            Remedy(
                "Then raise offsets.retention.minutes of the brokers above the longest pause of the group."
            ),
        ],
        partitions=names,
        since=since,
    )


def _over(case: Case, expired: list[_Expired]) -> Finding:
    names = [expiry.name for expiry in expired]
    since = min(expiry.removal.at for expiry in expired if expiry.removal.at is not None)
    moves = [expiry.after.offset - expiry.commit.offset for expiry in expired if expiry.after is not None]
    jump = max(moves, key=abs, default=0)
    moved = f"skipped up to {records(jump)}" if jump >= 0 else f"read up to {records(-jump)} again"
    return RULE.finding(
        Severity.NOTICE,
        case.group,
        f"The committed offsets of group {case.group} in {some(names)} had expired at {moment(since)}; it "
        f"has committed again since, and {moved}.",
        why="auto.offset.reset decided where it went on.",
        evidence=_evidence(expired, []),
        remedies=[
            Remedy("Raise offsets.retention.minutes of the brokers above the longest pause of the group.")
        ],
        partitions=names,
        since=since,
        until=max(
            (
                expiry.after.at
                for expiry in expired
                if expiry.after is not None and expiry.after.at is not None
            ),
            default=None,
        ),
    )


def _evidence(expired: list[_Expired], told: list[Event]) -> list[Evidence]:
    evidence = []
    for expiry in expired[: MOST_EVIDENCE // 2]:
        evidence.append(
            Evidence(
                f"{expiry.name}: committed {expiry.commit.offset}", expiry.commit.source, expiry.commit.at
            )
        )
        evidence.append(Evidence(f"{expiry.name}: offset removed", expiry.removal.source, expiry.removal.at))
        if expiry.after is not None:
            evidence.append(
                Evidence(
                    f"{expiry.name}: committed {expiry.after.offset}", expiry.after.source, expiry.after.at
                )
            )
    return evidence + [Evidence(event.text, event.source, event.at) for event in told]


def _by_log(case: Case, told: list[Event]) -> Finding:
    return RULE.finding(
        Severity.WARNING,
        case.group,
        f"Committed offsets of group {case.group} expired, says a broker's log.",
        why="Consumers that come back start where auto.offset.reset says: latest skips what came since, "
        "earliest reads again all that is kept.",
        evidence=[Evidence(event.text, event.source, event.at) for event in told[-MOST_EVIDENCE:]],
        since=told[0].at,
    )


RULE = Rule.of(
    __name__,
    judge,
    presentation=Presentation(of_one="has lost expired offsets", of_many="have lost expired offsets"),
)
