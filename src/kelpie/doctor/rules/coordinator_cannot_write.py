"""KLP109 coordinator-cannot-write

What it sees: the group's coordinator is there and cannot write to the group's partition
of __consumer_offsets, or could not read it.

Why it matters: a coordinator answers a join or a commit only when its record is written.
If it cannot write, commits are refused and rebalances do not end, while all brokers are
alive and the partition has a leader.

How it decides: the broker's log says that a record of the group could not be appended,
that appending to the partition failed (a full or broken disk), or that loading the
partition failed, and nothing later shows that it works again. Or commits of the
group's consumers were refused with COORDINATOR_NOT_AVAILABLE (15) three times or more
and for 30 s or more up to the end of the log, while the coordinator answers for the
group and the partition has a leader. A commit of the group that came later ends it.
Fewer replicas in sync than min.insync.replicas lead to the same error: that is KLP106,
and this rule leaves it to that one.

What it needs: the log of the coordinator, or those of the group's consumers. Without
either it is undetermined, unless the group has committed within the last minute: then
it can write.

What to do: by the reason in the log. A full disk: make room, or move partitions; a
directory that has failed stays out of use until the broker is restarted. A record that
is too large: the group has too many members or partitions for max.message.bytes of
__consumer_offsets. A load that failed: restart the broker, or move the partition
to another replica.

When it is wrong: consumers that log refused commits and have ended since.

Reproduce: kelpie lab run coordinator-cannot-write
"""

from collections.abc import Sequence

from kelpie.cluster.health import is_below_min_insync
from kelpie.doctor import checks
from kelpie.doctor.case import Case
from kelpie.doctor.coordinator_replies import first_and_last
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import CLIENT_LOGS, by_age
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import LATELY_MS, Sign
from kelpie.errors import ErrorCode
from kelpie.model.words import counted, duration, moment
from kelpie.observations import Event, EventKind

_REFUSED = ErrorCode.COORDINATOR_NOT_AVAILABLE
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_LEAST, _LEAST_MS = 3, 30_000
_WORKS = (
    EventKind.GENERATION_JOINED,
    EventKind.ASSIGNMENT_RECEIVED,
    EventKind.JOINED,
    EventKind.ASSIGNED,
)
"""None of these comes about without a record that was written."""
_LOADED = (EventKind.COORDINATOR_LOADED, EventKind.COORDINATOR_UNLOADED)
_BROKER_LOG = "the log of its coordinator"


def judge(case: Case) -> Judgement:
    works = _last_work(case)
    refusals = [event for event in _of_broker(case) if (event.at or 0) > works]
    if refusals:
        return _by_broker(case, refusals)
    if _is_below_min_insync(case):
        return ABSENT  # KLP106.
    commits = [
        event
        for event in case.events_of(EventKind.COMMIT_FAILED)
        if event.error == _REFUSED and (event.at or 0) > works
    ]
    if _last_long(commits) and _answers(case):
        return _by_commits(case, commits)
    recent = case.commit_rhythm.last
    if recent is not None and case.cluster.now - recent < LATELY_MS:
        return ABSENT
    return ABSENT if case.has_client_logs or case.has_broker_log else undetermined(_BROKER_LOG, CLIENT_LOGS)


def _last_work(case: Case) -> int:
    """When something was last seen for which the coordinator must write."""
    events = [event.at or 0 for event in case.events_of(*_WORKS)]
    home = case.offsets_partition
    events += [
        event.at or 0
        for event in case.cluster.events
        if event.kind in _LOADED and home is not None and (event.topic, event.partition) == tuple(home)
    ]
    written = case.commit_rhythm.last or 0
    return max([*events, written], default=0)


def _of_broker(case: Case) -> list[Event]:
    """What its coordinator said about this group, and about the group's partition."""
    home = case.offsets_partition
    own = case.events_of(EventKind.COORDINATOR_REFUSED)
    own += [
        event
        for event in case.cluster.events
        if event.kind is EventKind.COORDINATOR_REFUSED
        and home is not None
        and (event.topic, event.partition) == tuple(home)
    ]
    return sorted(own, key=lambda event: event.at or 0)


def _is_below_min_insync(case: Case) -> bool:
    home = case.offsets_partition
    view = case.cluster.view(home) if home is not None else None
    return view is not None and is_below_min_insync(case.cluster, view)


def _last_long(events: Sequence[Event]) -> bool:
    times = [event.at for event in events if event.at is not None]
    return len(times) >= _LEAST and times[-1] - times[0] >= _LEAST_MS


def _answers(case: Case) -> bool:
    """Whether the coordinator was there: it described the group, and its partition has a leader."""
    home = case.offsets_partition
    is_led = home is None or case.cluster.has_leader(home) is not False
    return is_led and (case.state is None or not case.state.error)


def _by_broker(case: Case, refusals: Sequence[Event]) -> Finding:
    last = refusals[-1]
    loading = "load" in last.text.lower()
    what = "could not load its partition" if loading else "cannot write its records"
    reason = f" ({last.reason})" if last.reason else ""
    return _found(
        case,
        refusals,
        f"Group {case.group} can neither join nor commit: its coordinator {what}{reason}, "
        f"{counted(len(refusals), 'time')} since {moment(refusals[0].at)}.",
        [_by_reason(last, loading)],
    )


def _by_commits(case: Case, commits: Sequence[Event]) -> Finding:
    lasted = (commits[-1].at or 0) - (commits[0].at or 0)
    return _found(
        case,
        commits,
        f"Group {case.group} cannot commit: its coordinator answers, and refused "
        f"{counted(len(commits), 'commit')} in {duration(lasted)} with COORDINATOR_NOT_AVAILABLE (15).",
        [
            Remedy(
                "Look in the log of its coordinator for what keeps it from writing: replicas that leave the "
                "in-sync replicas again and again, a full disk, a directory that has failed."
            )
        ],
    )


def _by_reason(event: Event, loading: bool) -> Remedy:
    if event.error in _TOO_LARGE:
        return Remedy(
            "The record of the group is too large: raise max.message.bytes of __consumer_offsets, or have "
            "fewer members with shorter subscriptions."
        )
    if "No space left" in event.text or event.error == ErrorCode.KAFKA_STORAGE_ERROR:
        return Remedy(
            "Make room on the disk of that broker, then restart it: a directory that has failed stays out of "
            "use until then."
        )
    if loading:
        return Remedy("Restart that broker: it loads the partition again, or another replica takes over.")
    return Remedy("See in the log of that broker, around this line, why the record was not written.")


def _found(case: Case, lines: Sequence[Event], summary: str, remedies: Sequence[Remedy]) -> Finding:
    home = case.offsets_partition
    quoted: list[Evidence] = first_and_last(lines)
    return RULE.finding(
        by_age(case, lines[-1].at, Severity.CRITICAL),
        case.group,
        summary,
        why="What its members read since the last commit is read again after the next restart, and a "
        "rebalance that begins now does not end.",
        evidence=quoted,
        remedies=remedies,
        cause=str(home or ""),
        partitions=[home] if home is not None else [],
        since=lines[0].at,
        check=checks.offsets_topic(case.cluster),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "has a coordinator that cannot write", "have coordinators that cannot write", stops_group=True
    ),
    asked_for=Sign.LOG_LINES | Sign.HOME_IN_DOUBT,
    otherwise=undetermined(_BROKER_LOG, CLIENT_LOGS),
    absent_for=Sign.COMMITTED_LATELY | Sign.HOME_BELOW_MIN_INSYNC,
)
