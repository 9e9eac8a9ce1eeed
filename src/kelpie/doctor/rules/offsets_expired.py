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
the group, or for topics that it no longer subscribes to. That nothing expired is only
said if no partition that the group reads lacks its offset, or if the history was
read from its beginning.

What it needs: the history of commits: Read on __consumer_offsets, or the log segments
of that topic. Or the log of the coordinator. DescribeConfigs on the cluster for
offsets.retention.minutes, without which the default counts. Without the history, or if
it was read from its middle only, it is undetermined, unless every partition that the
group reads has its offset (Describe on the group).

What to do: set the offsets back to where they were: the finding has the
numbers. If the group may be silent for so long, raise offsets.retention.minutes
above its longest pause.

When it is wrong: offsets that were deleted by hand after the retention had
passed look the same.

Reproduce: kelpie lab run offsets-expired
"""

from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, quotes, undetermined
from kelpie.doctor.membership import describing
from kelpie.doctor.position_words import HISTORY, MOST_EVIDENCE, records, reset, some
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
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
    if case.members:
        topics = {name.topic for name in case.reads.partitions}
        expired = [expiry for expiry in expired if expiry.name.topic in topics]
    lines = [event for event in case.events_of(EventKind.OFFSETS_EXPIRED) if event.group == case.group]
    open_still = [expiry for expiry in expired if expiry.after is None and not case.has_offset(expiry.name)]
    if open_still:
        return _found(case, open_still, lines)
    if expired:
        return _over(case, [expiry for expiry in expired if expiry.after is not None] or expired)
    if lines and not _committed_since(case, lines[-1]):
        return _by_log(case, lines)
    if unclear:
        return undetermined(
            f"whether the offsets of {some(unclear)} expired or were deleted: their commits are gone"
        )
    return ABSENT if _all_there(case) else _open_history(case)


def _open_history(case: Case) -> Judgement:
    """What the history shows only counts if it was read from its beginning."""
    if case.history_from is None and not case.commits:
        return undetermined(HISTORY)
    home = str(case.offsets_partition)
    if any(row.kind == "history" and row.name == home for row in case.cluster.unasked):
        since = f", which begins at {moment(case.history_from)}" if case.history_from is not None else ""
        return undetermined(
            f"whether offsets expired before the part of {home} that was read{since}: --history reads more"
        )
    return ABSENT


def _last_removal(history: tuple[Commit, ...]) -> tuple[Commit | None, Commit | None, Commit | None]:
    """The last removal, the commit that it removed and the first one after it."""
    at = max((index for index, row in enumerate(history) if row.removed), default=None)
    if at is None:
        return None, None, None
    before = next((index for index in range(at, -1, -1) if not history[index].removed), -1)
    commit = history[before] if before >= 0 else None
    return commit, history[before + 1], next(iter(history[at + 1 :]), None)


def _is_expiry(case: Case, commit: Commit, removal: Commit) -> bool:
    if removal.at is None or commit.at is None or _was_deleted(case, removal.at):
        return False
    if commit.expires is not None:
        return removal.at >= commit.expires
    minutes = case.cluster.number("offsets.retention.minutes")
    return removal.at - commit.at >= (_DEFAULT_MINUTES if minutes is None else minutes) * _MINUTE_MS


def _was_deleted(case: Case, at: Instant) -> bool:
    return any(
        "delete" in event.reason and event.at is not None and abs(event.at - at) <= _SAME_MOMENT_MS
        for event in case.events_of(EventKind.GROUP_REMOVED)
    )


def _all_there(case: Case) -> bool:
    """Nothing that the group reads lacks its offset, so nothing of it can have expired."""
    names = case.reads.partitions
    return case.offsets_are_known and bool(names) and all(case.has_offset(name) for name in names)


def _committed_since(case: Case, event: Event) -> bool:
    if any(case.has_offset(name) for name in case.committed):
        return True
    return any((row.at or 0) > (event.at or 0) for history in case.commits.values() for row in history)


def _found(case: Case, expired: list[_Expired], lines: list[Event]) -> Finding:
    names = [expiry.name for expiry in expired]
    since = _since(expired)
    ends = [(expiry.commit.offset, case.track(expiry.name).end) for expiry in expired]
    skipped = [max(0, end.latest - offset) for offset, end in ends if end is not None]
    first = expired[0]
    pause = duration((first.removal.at or 0) - (first.commit.at or 0))
    return RULE.finding(
        Severity.WARNING,
        case.group,
        f"Group {case.group} has lost its committed offsets in {some(names)}: they expired at "
        f"{moment(since)}, {pause} after the last commit.",
        why="Consumers that come back start where auto.offset.reset says: latest, the default, skips "
        f"{records(sum(skipped)) if skipped else 'what came since'}; earliest reads again all that is kept.",
        evidence=_evidence(expired) + quotes(lines),
        remedies=[
            *(
                reset(case, f"Set {name} back to where it was.", [name], "--to-offset", expiry.commit.offset)
                for name, expiry in zip(names, expired[:MOST_EVIDENCE], strict=False)
            ),
            Remedy(
                "Then raise offsets.retention.minutes of the brokers above the longest pause of the group."
            ),
        ],
        partitions=names,
        since=since,
        check=describing(case, "--offsets"),
    )


def _over(case: Case, expired: list[_Expired]) -> Finding:
    names = [expiry.name for expiry in expired]
    since = _since(expired)
    again = [(expiry.commit, expiry.after) for expiry in expired if expiry.after is not None]
    jump = max((after.offset - commit.offset for commit, after in again), key=abs, default=0)
    moved = f"skipped up to {records(jump)}" if jump >= 0 else f"read up to {records(-jump)} again"
    return RULE.finding(
        Severity.NOTICE,
        case.group,
        f"Group {case.group} {moved} in {some(names)}: its committed offsets had expired at "
        f"{moment(since)}. It has committed again since.",
        why="auto.offset.reset decided where it went on.",
        evidence=_evidence(expired),
        remedies=[
            Remedy("Raise offsets.retention.minutes of the brokers above the longest pause of the group.")
        ],
        partitions=names,
        since=since,
        until=max((after.at for _, after in again if after.at is not None), default=None),
        check=describing(case, "--offsets"),
    )


def _since(expired: list[_Expired]) -> Instant:
    return min(expiry.removal.at for expiry in expired if expiry.removal.at is not None)


def _evidence(expired: list[_Expired]) -> list[Evidence]:
    evidence = []
    for name, commit, removal, after in expired[: MOST_EVIDENCE // 2]:
        evidence.append(Evidence.of(commit, f"{name}: committed {commit.offset}"))
        evidence.append(Evidence.of(removal, f"{name}: offset removed"))
        if after is not None:
            evidence.append(Evidence.of(after, f"{name}: committed {after.offset}"))
    return evidence


def _by_log(case: Case, lines: list[Event]) -> Finding:
    return RULE.finding(
        Severity.WARNING,
        case.group,
        f"Group {case.group} has lost committed offsets: a broker's log says that they expired.",
        why="Consumers that come back start where auto.offset.reset says: latest skips what came since, "
        "earliest reads again all that is kept.",
        evidence=quotes(lines[-MOST_EVIDENCE:]),
        since=lines[0].at,
        check=describing(case, "--offsets"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("has lost committed offsets", "have lost committed offsets", "lost committed offsets"),
    asked_for=Sign.LOG_LINES
    | Sign.REMOVED
    | Sign.OFFSETS_UNKNOWN
    | Sign.UNCOMMITTED
    | Sign.NOTHING_READ
    | Sign.OFFSET_REFUSED
    | Sign.UNTOLD_OFFSET,
)
