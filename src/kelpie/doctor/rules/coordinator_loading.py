"""KLP102 coordinator-loading

What it sees: the group's coordinator is there, and still reads the group's
partition of __consumer_offsets into memory.

Why it matters: until it has read it, it answers nothing else for any group on
that partition: no join, no commit, no committed offset. Consumers wait and try
again by themselves. After an election that is a matter of milliseconds to
seconds. Minutes mean that the partition has grown: the log cleaner is dead or
off, so nothing is compacted, or the disk is slow.

How it decides: the coordinator answered error 14 (COORDINATOR_LOAD_IN_PROGRESS)
when it was last asked for the group; or its log says that it began to load the
partition and has not said since that it is done. Kafka before 2.0 answers 16
while it loads, which KLP103 reports.

What to do: wait. If it does not end, look at the size of the partition on disk
and whether the log cleaner of that broker is alive ("Starting the log cleaner"
in its log, and no error after it).

When it is wrong: it was asked in the one second in which a healthy coordinator
loaded. Ask again; the finding is there twice only if it is slow.

Reproduce: kelpie lab run coordinator-loading
"""

from kelpie.cluster import commands
from kelpie.doctor.case import Case
from kelpie.doctor.coordinator_replies import answer_evidence, last_replies, last_reply
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, quotes, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.errors import ErrorCode
from kelpie.model.words import duration, moment
from kelpie.observations import OFFSETS_TOPIC, Event, EventKind

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
    since = began.at if began is not None else None
    lasted = case.cluster.now - since if since is not None else None
    slow = lasted is not None and lasted > _TOO_LONG_MS
    node = node if node is not None and node >= 0 else None
    who = case.cluster.broker_name(node) if node is not None else "its coordinator"
    where = case.offsets_partition or f"its partition of {OFFSETS_TOPIC}"
    lasting = f", for {duration(lasted)} now (since {moment(since)})" if lasted is not None else ""
    return RULE.finding(
        Severity.CRITICAL if slow else Severity.WARNING,
        case.group,
        f"Group {case.group} waits: {who} is loading {where}{lasting}.",
        why="Until it is read, nobody in this group can join, fetch committed offsets or commit. "
        + (
            "That takes seconds in a healthy cluster; this partition is too large, or its disk too slow."
            if slow
            else "It ends by itself, mostly within seconds."
        ),
        evidence=[*quotes([began] if began is not None else []), *replies],
        remedies=_remedies(case, node, slow),
        cause=str(where),
        brokers=[node] if node is not None else [],
        partitions=[case.offsets_partition] if case.offsets_partition else [],
        since=since,
    )


def _remedies(case: Case, node: int | None, slow: bool) -> list[Remedy]:
    again = Remedy("Ask again in a few seconds.", commands.kelpie("doctor", case.cluster, name=case.group))
    if not slow:
        return [again]
    brokers = ("--broker-list", node) if node is not None else ()
    words = ("--describe", "--topic-list", OFFSETS_TOPIC, *brokers)
    return [
        Remedy(
            "Look at the partition's size. Far above 100 MB, the log cleaner does not compact it: look for "
            'its last error in log-cleaner.log, and restart the broker if its thread has died ("Stopped").',
            commands.kafka("kafka-log-dirs", case.cluster, *words),
        ),
        again,
    ]


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "waits for a coordinator that is loading", "wait for a coordinator that is loading", stops_group=True
    ),
)
