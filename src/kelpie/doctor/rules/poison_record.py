"""KLP317 poison-record

What it sees: one record that the group cannot get over. Its consumers fail at the
same offset again and again, or the group stands at one offset of one partition
while the same member reads its other partitions.

Why it matters: everything behind that record in its partition waits. A restart does
not help: the next consumer meets the same record. Often the consumer ends with the
error, is started again, and fails again.

How it decides: logs of the consumers name the record (Java: "Error deserializing …
for partition P at offset N", "Record for partition P at offset N is invalid"; Kafka
Streams: "Exception caught during Deserialization"; Spring: "exhausted for P@N"), and
the committed offset is not beyond it. Where no committed offset is known, the log must
name the same record twice. Without such lines: the group is stable, one partition has
not moved for 5 min though records wait, it has a leader and its offset is within the
log, and its member keeps up in another partition meanwhile: what waits there is less
than a minute old. A member with a backlog reads one partition after the other, and may
take longer for one of them. That is a warning, and
the record is told as the likely cause: a partition that the application has paused
looks the same. Applications of Kafka Streams pause partitions by themselves: there
only logs count. The standstill itself is KLP309, or KLP310 if nothing is committed any
more; this rule explains them.

What it needs: the logs of the group's consumers; or the rights to describe the group
and to see the topics, and two surveys or the history of commits. Without any of them
it is undetermined.

What to do: look at the record first (kelpie peek shows its size, headers and bytes).
Then let the application handle it: correct the deserializer or the schema, or have it
write such records to a dead letter topic. Whoever moves the group past a record takes
it away from the group for good, so no command for that is given here.

When it is wrong: a partition that the application pauses on purpose. The record that
fails may be a later one of the batch that begins at the committed offset, unless the
log names it.

Tried on real brokers of 4.3.1: a consumer of librdkafka that begins anew at the same record
(found by positions). Not tried: the lines of logs, which are those of Kafka's sources.

Reproduce: kelpie lab run poison-record
"""

from collections import defaultdict
from collections.abc import Sequence

from kelpie.cluster import commands
from kelpie.doctor import position_words as words
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import CLIENT_LOGS, LogLines, describing, person_of
from kelpie.doctor.positions import SURE_MS, Track, keeps_up
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import POSITION_OPEN, Sign
from kelpie.model.names import TopicPartition
from kelpie.model.words import duration
from kelpie.observations import Event, EventKind, Member
from kelpie.observations.positions import NO_OFFSET

_LONG_MS = 300_000
"""As long as a consumer may work between two polls, unless set otherwise (max.poll.interval.ms)."""
_TWICE = 2
Place = tuple[TopicPartition, int]


def judge(case: Case) -> Judgement:
    failures = case.events_of(EventKind.RECORD_UNREADABLE) if case.events else []
    places = _held_up(case, failures)
    if places:
        return _named_by_logs(case, places)
    if case.members is None:
        return ABSENT if case.has_client_logs else undetermined(CLIENT_LOGS, "who is in the group")
    state = case.described
    if not case.members or case.is_connect or (state is not None and state.is_streams):
        return ABSENT
    tracks = case.tracks
    behind = [track for track in tracks if track.is_behind]
    if not behind:
        return ABSENT if all(track.is_behind is False for track in tracks) and tracks else _unknown(case)
    return _judge_positions(case, behind)


def _unknown(case: Case) -> Judgement:
    if case.has_client_logs:
        return ABSENT
    return undetermined("its committed offsets and where logs end", CLIENT_LOGS)


def _held_up(case: Case, failures: Sequence[Event]) -> dict[Place, list[Event]]:
    """The records that failed and that the group is not past, with the lines that tell it."""
    lines: defaultdict[Place, list[Event]] = defaultdict(list)
    for event in failures:
        if event.topic is not None and event.partition is not None and event.offset is not None:
            lines[TopicPartition(event.topic, event.partition), event.offset].append(event)
    return {
        place: events
        for place, events in lines.items()
        if not case.is_gone(place[0]) and _is_held(case, place, events)
    }


def _is_held(case: Case, place: Place, events: Sequence[Event]) -> bool:
    name, offset = place
    track = case.track(name)
    if track.offset == NO_OFFSET:
        return len(events) >= _TWICE
    last = max((event.at for event in events if event.at is not None), default=None)
    moved = track.read_at
    is_on_its_way = last is not None and moved is not None and moved > last + case.patience_ms(name)
    return track.offset <= offset and not is_on_its_way


def _named_by_logs(case: Case, places: dict[Place, list[Event]]) -> Finding:
    (name, offset), events = max(places.items(), key=lambda pair: (len(pair[1]), pair[0]))
    lines = LogLines(case, events, events)
    track = case.track(name)
    waits = bool(track.is_behind) and track.now - (track.unread_since or track.now) >= case.patience_ms(name)
    more = f" The same holds for {words.some(_others(places, name, offset))}." if len(places) > 1 else ""
    lag = f"; {words.records(track.lag)} wait there" if track.lag else ""
    return RULE.finding(
        Severity.CRITICAL if waits else lines.severity(Severity.WARNING),
        case.group,
        f"Group {case.group} cannot get over the record at offset {offset} of {name}: it failed there "
        f"{lines.how_often} (log of {lines.who}){lag}.{more}",
        why=f"Each consumer that gets {name} meets the same record: {events[-1].reason}.",
        evidence=[
            *lines.evidence,
            *words.evidence_of(*track.standing[-1:], track.end, name=name),
        ],
        remedies=_remedies(case, name, offset, is_named=True),
        partitions=sorted({place[0] for place in places}),
        members=lines.names,
        since=lines.first,
        check=describing(case, "--offsets"),
    )


def _others(places: dict[Place, list[Event]], name: TopicPartition, offset: int) -> list[str]:
    return [f"offset {at} of {other}" for other, at in sorted(places) if (other, at) != (name, offset)]


def _judge_positions(case: Case, behind: Sequence[Track]) -> Judgement:
    if case.is_cut_off:
        return undetermined(words.NO_COORDINATOR)
    if case.is_rebalancing:
        return undetermined(words.REBALANCES)
    standing = [(track, track.unread_since) for track in behind]
    stuck = [track for track, since in standing if since is not None and track.now - since >= _LONG_MS]
    for track in stuck:
        holder = _holder(case, track)
        if holder is None:
            continue
        of_holder = [other for other in stuck if other.name in (holder.assigned or ())]
        moved = _moved_meanwhile(case, track, holder)
        if of_holder == [track] and moved is not None and _is_readable(case, track):
            return _told_by_positions(case, track, holder, moved)
    is_unclear = any(track.read_at is None and track not in stuck for track in behind)
    if is_unclear and not case.has_client_logs:
        return undetermined(words.SECOND_LOOK, CLIENT_LOGS)
    return ABSENT


def _holder(case: Case, track: Track) -> Member | None:
    return next((member for member in case.members or () if track.name in (member.assigned or ())), None)


def _moved_meanwhile(case: Case, track: Track, holder: Member) -> Track | None:
    """Another partition of the member, in which it moved a short time ago and keeps up."""
    own = {name for name in holder.assigned or () if name != track.name}
    for other in case.tracks:
        moved = other.name in own and other.read_at is not None and other.now - other.read_at < _LONG_MS
        if moved and keeps_up(other, max(SURE_MS, case.patience_ms(other.name))):
            return other
    return None


def _is_readable(case: Case, track: Track) -> bool:
    end = track.end
    within = end is not None and (end.earliest == NO_OFFSET or end.earliest <= track.offset)
    return within and case.cluster.has_leader(track.name) is not False


def _told_by_positions(case: Case, track: Track, holder: Member, moved: Track) -> Finding:
    since = track.unread_since or 0
    who = person_of(holder)
    return RULE.finding(
        Severity.WARNING,
        case.group,
        f"Group {case.group} has been at offset {track.offset} of {track.name} for "
        f"{duration(track.now - since)} at least, while {who} reads its other partitions: probably it cannot "
        f"get over a record there; {words.records(track.lag or 0)} wait.",
        why=f"{who} polls and commits, so it is neither hung nor cut off. It fails at a record again and "
        "again, or its application has paused this partition.",
        evidence=[
            *words.evidence_of(track.standing[0], track.standing[-1], track.end, name=track.name),
            *words.evidence_of(*moved.points[-2:], name=moved.name),
        ],
        remedies=_remedies(case, track.name, track.offset, is_named=False),
        partitions=[track.name],
        members=[holder.member_id],
        since=since,
        check=describing(case, "--offsets"),
    )


def _remedies(case: Case, name: TopicPartition, offset: int, *, is_named: bool) -> list[Remedy]:
    later = " It may also be a later one of the same batch: the consumer's log names it."
    return [
        Remedy(
            f"See the record at {offset} first: its size, headers and bytes.{'' if is_named else later}",
            commands.peek(case.cluster, name, offset),
        ),
        Remedy(
            "Correct the deserializer or the schema, or let the application put such records aside (a dead "
            "letter topic), and start it again."
        ),
    ]


RULE = Rule.of(
    __name__,
    judge,
    Presentation("cannot get over a record", "cannot get over a record", stops_group=True),
    asked_for=POSITION_OPEN | Sign.LOG_LINES | Sign.MEMBERS_UNKNOWN,
)
