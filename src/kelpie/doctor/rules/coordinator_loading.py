"""KLP102 coordinator-loading

What it sees: the group's coordinator is there, and still reads the group's
partition of __consumer_offsets into memory.

Why it matters: until it has read it, it answers nothing else for any group on
that partition: no join, no commit, no committed offset. Consumers wait and try
again by themselves. After an election that is a matter of milliseconds to
seconds. Minutes mean that the partition has grown: the log cleaner is dead or
off, so nothing is compacted, or the disk is slow.

How it decides: the coordinator answered error 14 (COORDINATOR_LOAD_IN_PROGRESS)
when it was last asked for the group, which a survey does several times within some
seconds; or its log says that it began to load the partition and has not said
since that it is done. How long that has lasted decides: up to 10 s it is a notice,
beyond that a warning, beyond a minute critical. Kafka before 2.0 answers 16 while
it loads, which KLP103 reports.

What it needs: an answer of the coordinator (the right Describe on the group), or
the broker's log. How long it has lasted is known from the log, or from earlier
surveys in the store; with neither, only from the seconds of this survey, and it is
a notice. Without an answer and without a log it is undetermined.

What to do: wait. If it does not end, look at the size of the partition on disk
and whether the log cleaner of that broker is alive ("Starting the log cleaner"
in its log, and no error after it).

When it is wrong: two short loads, one in each of two surveys, look like a long one
if the group did not commit in between.

Reproduce: kelpie lab run coordinator-loading
"""

from kelpie.cluster import commands
from kelpie.doctor.case import Case
from kelpie.doctor.coordinator_replies import answer_evidence, last_replies, last_reply, same_since
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, quotes, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.errors import ErrorCode
from kelpie.model.words import duration, moment
from kelpie.observations import OFFSETS_TOPIC, Event, EventKind

_ORDINARY_MS = 10_000
"""After an election most coordinators have loaded by then."""
_TOO_LONG_MS = 60_000
"""Loading took longer than that in no healthy cluster that was seen."""

_ENDS = {EventKind.COORDINATOR_LOADED, EventKind.COORDINATOR_UNLOADED}
_SERVED = {
    EventKind.GENERATION_JOINED,
    EventKind.MEMBER_JOINED,
    EventKind.ASSIGNMENT_RECEIVED,
    EventKind.JOINED,
}
"""A coordinator that does this for a group has loaded it."""


def judge(case: Case) -> Judgement:
    began = _still_loading(case)
    reply = last_reply(case)
    if reply is not None and reply.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        replies = [answer for answer in last_replies(case) if answer.error is reply.error]
        return _found(case, answer_evidence(replies), began, reply.told_by)
    began_at = began.at if began is not None else None
    if reply is not None and reply.error is ErrorCode.NONE and (reply.at or 0) >= (began_at or 0):
        return ABSENT
    if began is not None:
        return _found(case, [], began, began.node)
    if case.offsets_partition is not None and case.cluster.has_leader(case.offsets_partition) is False:
        return ABSENT  # No broker is there that could load it: KLP101.
    return undetermined("an answer of the group's coordinator") if reply is None else ABSENT


def _still_loading(case: Case) -> Event | None:
    """The newest line about this partition, if it says that loading began."""
    partition = case.offsets_partition
    events = case.cluster.partition_events.get(partition, ()) if partition is not None else ()
    about = [event for event in events if event.kind in (EventKind.COORDINATOR_LOADING, *_ENDS)]
    if not about or about[-1].kind is not EventKind.COORDINATOR_LOADING:
        return None
    began = about[-1]
    served = any(event.kind in _SERVED and (event.at or 0) > (began.at or 0) for event in case.events)
    return None if served else began


def _found(case: Case, replies: list[Evidence], began: Event | None, node: int | None) -> Finding:
    replied_since = same_since(case, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    times = [at for at in (began.at if began is not None else None, replied_since) if at is not None]
    since = min(times, default=None)
    lasted = case.cluster.now - since if since is not None else None
    slow = lasted is not None and lasted > _TOO_LONG_MS
    severity = Severity.WARNING if lasted is not None and lasted > _ORDINARY_MS else Severity.NOTICE
    node = node if node is not None and node >= 0 else None
    who = case.cluster.broker_name(node) if node is not None else "its coordinator"
    where = case.offsets_partition or f"its partition of {OFFSETS_TOPIC}"
    least = "" if began is not None else "at least "
    lasting = f", for {least}{duration(lasted)} now (since {moment(since)})" if lasted else ""
    return RULE.finding(
        Severity.CRITICAL if slow else severity,
        case.group,
        f"Group {case.group} waits: {who} is loading {where}{lasting}.",
        why="Until it is read, nobody in this group can join, fetch committed offsets or commit. "
        + (
            "That takes seconds in a healthy cluster; this partition is too large, or its disk too slow."
            if slow
            else "After an election that takes seconds and ends by itself; minutes are too long."
        ),
        evidence=[*quotes([began] if began is not None else []), *replies],
        remedies=_remedies(case, node, slow),
        cause=str(where),
        brokers=[node] if node is not None else [],
        partitions=[case.offsets_partition] if case.offsets_partition else [],
        since=since,
        check=_sizes(case, node),
    )


def _remedies(case: Case, node: int | None, slow: bool) -> list[Remedy]:
    again = Remedy("Ask again in a few seconds.", commands.kelpie("doctor", case.cluster, name=case.group))
    if not slow:
        return [again]
    return [
        Remedy(
            "Look at the partition's size. Far above 100 MB, the log cleaner does not compact it: look for "
            'its last error in log-cleaner.log, and restart the broker if its thread has died ("Stopped").',
            _sizes(case, node),
        ),
        again,
    ]


def _sizes(case: Case, node: int | None) -> str:
    """How large the partitions of the offsets topic are: what is read while a coordinator loads."""
    brokers = ("--broker-list", node) if node is not None else ()
    words = ("--describe", "--topic-list", OFFSETS_TOPIC, *brokers)
    return commands.kafka("kafka-log-dirs", case.cluster, *words)


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "waits for a coordinator that is loading", "wait for a coordinator that is loading", stops_group=True
    ),
    asked_for=Sign.HOME_IN_DOUBT | Sign.LOADING | Sign.NO_REPLY | Sign.LOG_LINES,
)
