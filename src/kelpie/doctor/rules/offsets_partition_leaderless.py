"""KLP101 offsets-partition-leaderless

What it sees: the partition of __consumer_offsets that the group lives on has no
leader, or one that is dead.

Why it matters: its leader is the group's coordinator. Without it no member of the
group can join, fetch committed offsets or commit; consumers wait without an
error in their logs, and Kafka's tools leave the group out of lists. It does not
heal by itself: only when a replica comes back.

How it decides: abs(hash of the group's name) modulo the number of partitions
names the partition; a broker's metadata shows leader −1 for it, or a leader
that is not alive (Kafka 0.9 goes on naming the dead one). Without metadata,
error 15 in answer to FindCoordinator is as good: from every broker that could
be asked, or to the group's own clients, again and again, with nothing found
since. An outage that is over is a notice, with its beginning and end. Where no
group is known that lives on such a partition, the partitions are named: without
their leader no broker can list the groups on them.

What it needs: metadata from one living broker, and the right to describe
__consumer_offsets (or a description of that topic in files). Where the topic is
hidden, the answers to FindCoordinator decide, or logs of the group's clients. With
none of these it is undetermined. That an outage is over is known only from an
earlier survey or from logs of brokers.

What to do: start the brokers that hold a replica; once one is back that was in
sync, it leads again and nothing is lost. If they are gone for good, move the
group to a name on a healthy partition (kelpie rehome), or elect an unclean
leader and lose the newest commits.

When it is wrong: a leader that the doctor cannot reach but the clients can. The
finding says who said it was dead; compare KLP105. In files, a description from
another day.

Reproduce: kelpie lab run coordinator-outage
"""

from collections.abc import Sequence
from typing import NamedTuple

from kelpie.cluster import ClusterView, commands
from kelpie.cluster.leadership import leaderless_views
from kelpie.cluster.outages import shared_outages
from kelpie.doctor import checks
from kelpie.doctor.case import Case
from kelpie.doctor.coordinator_replies import answer_evidence, lookups
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, quotes, undetermined
from kelpie.doctor.leader_remedies import leader_remedies
from kelpie.doctor.position_words import dead_evidence
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.errors import ErrorCode, describe
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import counted, duration, listed, moment, numbered, ranges
from kelpie.observations import OFFSETS_TOPIC, Event, EventKind, PartitionView

_UNAVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE
_LONG_ENOUGH_MS = 5_000
"""In a new cluster the first lookup creates the topic: that takes less, and is answered with 15 too."""


class _Leaderless(NamedTuple):
    """What is the same for all groups of an offsets partition without a leader."""

    state: str
    dead: tuple[int, ...]
    since: Instant | None
    """When the last replica went, or the time of the first report that there is no leader."""
    evidence: tuple[Evidence, ...]
    starts: tuple[Remedy, ...]
    """Remedies that give it a leader again."""
    last_resort: Remedy


class _Past(NamedTuple):
    """The last period without a leader, now over. `since` is None if nobody saw it begin."""

    since: Instant | None
    until: Instant
    evidence: Evidence


def judge(case: Case) -> Judgement:
    partition = case.offsets_partition
    if partition is None:
        return _by_answers(case) or undetermined("the number of partitions of __consumer_offsets")
    view = case.cluster.view(partition)
    if view is None:
        return _by_answers(case) or undetermined(f"the leader of {partition}")
    has_leader = case.cluster.has_leader(partition)
    if has_leader is None:
        return undetermined(f"whether broker {view.leader}, the leader of {partition}, is alive")
    if not has_leader:
        return _found(case, case.cluster.once(_leaderless, view))
    past = _past(case.cluster, partition, view)
    return _is_over(case, partition, past) if past is not None else ABSENT


def judge_rest(cluster: ClusterView, cases: Sequence[Case]) -> Judgement:
    """No broker lists the groups of a partition without a leader: groups that are not known may be hit."""
    leaderless = cluster.leaderless
    hit = {case.offsets_partition for case in cases}
    if not leaderless or not cluster.all_groups or any(name in hit for name in leaderless):
        return ABSENT
    first = cluster.view(leaderless[0])
    dead = cluster.dead_brokers
    start = numbered("broker", dead) if dead else "the brokers that hold their replicas"
    return RULE.finding(
        Severity.CRITICAL,
        None,
        f"{len(leaderless)} of {counted(len(cluster.offsets_topic), 'partition')} of {OFFSETS_TOPIC} "
        f"{'has' if len(leaderless) == 1 else 'have'} no leader: "
        f"{ranges(name.partition for name in leaderless)}. Groups on them have no "
        "coordinator; no broker can list these groups, and no earlier survey has seen them.",
        why="Until they have leaders, nobody in these groups can join, fetch committed offsets or commit.",
        evidence=[
            *([Evidence.of(first, _described(first))] if first is not None else []),
            *dead_evidence(cluster, dead),
        ],
        remedies=[
            Remedy(f"Start {start}."),
            Remedy(
                "See whether a group that you know of is among them.",
                commands.kelpie("where", cluster, name="GROUP"),
            ),
        ],
        cause=OFFSETS_TOPIC,
        brokers=dead,
        partitions=leaderless,
        check=_check(cluster, "--unavailable-partitions"),
    )


def _by_answers(case: Case) -> Judgement | None:
    """No broker described the partition, but answers about the coordinator tell. None: there are none."""
    if case.cluster.offsets_partitions == 0:
        return ABSENT  # KLP104.
    answers = lookups(case)
    if answers:
        missing = all(answer.error is _UNAVAILABLE for answer in answers.values())
        return _unavailable(case) if missing else ABSENT
    failures = _failed_lookups(case)
    if failures:
        lasted = (failures[-1].at or 0) - (failures[0].at or 0)
        return _unavailable(case) if lasted >= _LONG_ENOUGH_MS else None
    succeeded = any(event.kind is EventKind.COORDINATOR_FOUND for event in case.events)
    return ABSENT if succeeded else None


def _failed_lookups(case: Case) -> Sequence[Event]:
    """Lookups of the group's own clients that were answered with error 15, since the last that succeeded."""
    failures: list[Event] = []
    for event in case.events:
        if event.kind is EventKind.COORDINATOR_FOUND:
            failures.clear()
        elif event.kind is EventKind.LOOKUP_FAILED and event.error in (None, _UNAVAILABLE):
            failures.append(event)
    return failures


def _leaderless(cluster: ClusterView, view: PartitionView) -> _Leaderless:
    losses = list(cluster.leader_losses(view.name))
    moments = [event.at for event in losses if event.at is not None]
    last_loss = cluster.last_loss(view.replicas)
    if last_loss is not None:
        moments.append(last_loss)
    return _Leaderless(
        _state(view),
        tuple(sorted(node for node in view.replicas if cluster.is_alive(node) is False)),
        min(moments, default=None),
        (
            Evidence.of(view, _described(view)),
            *dead_evidence(cluster, view.replicas),
            *quotes(losses[-1:]),
        ),
        tuple(leader_remedies(cluster, [view])),
        _last_resort(cluster, view.name, view),
    )


def _found(case: Case, home: _Leaderless) -> Finding:
    """Brokers describe the partition of the group."""
    return _finding(
        case,
        home.state,
        evidence=[*home.evidence, *_of_group(case)],
        remedies=[*home.starts, _move(case), home.last_resort],
        dead=home.dead,
        since=home.since if home.since is not None else _first_failure(case),
    )


def _unavailable(case: Case) -> Finding:
    """No broker describes the partition of the group."""
    cluster, partition = case.cluster, case.offsets_partition
    losses = list(cluster.leader_losses(partition))
    moments = [event.at for event in losses if event.at is not None]
    where = commands.kelpie("where", cluster, name=case.group)
    return _finding(
        case,
        _state_by_answers(case),
        evidence=[*quotes(losses[-1:]), *_of_group(case)],
        remedies=[Remedy("See which partition it is, and which brokers hold it.", where), _move(case)]
        if partition is None
        else [_move(case), _last_resort(cluster, partition, None)],
        since=min(moments) if moments else _first_failure(case),
    )


def _finding(
    case: Case,
    state: str,
    *,
    evidence: Sequence[Evidence],
    remedies: Sequence[Remedy],
    dead: Sequence[int] = (),
    since: Instant | None,
) -> Finding:
    partition = case.offsets_partition
    return RULE.finding(
        Severity.CRITICAL,
        case.group,
        f"Group {case.group} has no coordinator: {state}.",
        why="Until it has a leader, nobody in this group can join, fetch committed offsets or commit.",
        evidence=evidence,
        remedies=remedies,
        cause=str(partition or case.group),
        brokers=dead,
        partitions=[partition] if partition else [],
        since=since,
        check=case.cluster.once(_check, "--unavailable-partitions"),
    )


def _check(cluster: ClusterView, option: str) -> str:
    return checks.offsets_topic(cluster, option)


def _state_by_answers(case: Case) -> str:
    where = str(case.offsets_partition or f"its partition of {OFFSETS_TOPIC}")
    failures = _failed_lookups(case)
    if lookups(case) or not failures:
        return f"{where} has no leader, as every broker says that was asked"
    return (
        f"its clients asked {counted(len(failures), 'time')} from {moment(failures[0].at)} on, and were "
        f"told each time that there is none: {where} has no leader"
    )


def _state(view: PartitionView) -> str:
    if not view.replicas:
        held = "its replicas are on brokers that are gone, and that Kafka 0.9 does not name"
    else:
        held = f"its {'replica is' if len(view.replicas) == 1 else 'replicas are'} on "
        held += numbered("broker", view.replicas)
    if view.leader < 0:
        return f"{view.name} has no leader; {held}"
    return f"{view.name} is led by broker {view.leader}, which is dead; {held}"


def _first_failure(case: Case) -> Instant | None:
    failures = _failed_lookups(case)
    return failures[0].at if failures else None


def _of_group(case: Case) -> list[Evidence]:
    """What tells of this group alone."""
    evidence = answer_evidence(row for row in lookups(case).values() if row.error is _UNAVAILABLE)
    failures = _failed_lookups(case)
    evidence += quotes(failures[:1])
    if len(failures) > 1:
        evidence.append(Evidence.of(failures[-1], f"{counted(len(failures), 'such line')} until then"))
    if case.listed is False:
        evidence.append(case.cluster.once(_unlisted, case.cluster.now))
    return evidence


def _unlisted(_: ClusterView, now: Instant) -> Evidence:
    return Evidence("no broker lists the group any more", at=now or None)


def _described(view: PartitionView) -> str:
    text = f"{view.name}: leader {view.leader if view.leader >= 0 else 'none'}"
    text += f", replicas {listed(view.replicas) or 'unknown'}, in sync {listed(view.in_sync) or 'none'}"
    if view.eligible:
        text += f", eligible to lead {listed(view.eligible)}"
    return text + (f", error {describe(view.error)}" if view.error else "")


def _past(cluster: ClusterView, partition: TopicPartition, view: PartitionView) -> _Past | None:
    """The last time that it had no leader, if that is known and over."""
    seen = [*cluster.earlier_views.get(partition, ()), view]
    for gone, back in reversed([*leaderless_views(seen)]):
        if back.at is not None:
            return _Past(gone.at, back.at, Evidence.of(gone, _described(gone)))
    for last, until in shared_outages([cluster.outages.get(node, ()) for node in view.replicas]):
        return _Past(last.since, until, Evidence(last.text, last.source, last.since))
    return None


def _is_over(case: Case, partition: TopicPartition, past: _Past) -> Finding:
    lasted = f" ({duration(past.until - past.since)})" if past.since is not None else ""
    return RULE.finding(
        Severity.NOTICE,
        case.group,
        f"Group {case.group} had no coordinator until {moment(past.until)}{lasted}: {partition} had no "
        "leader.",
        why="It is over. In the meantime nobody in this group could join, fetch committed offsets or commit; "
        "what was read and not committed was read again.",
        evidence=[past.evidence],
        cause=str(partition),
        partitions=[partition],
        since=past.since,
        until=past.until,
        check=checks.offsets_topic(case.cluster),
    )


def _move(case: Case) -> Remedy:
    return Remedy(
        "If its replicas are gone for good, move the group, offsets and all, to a healthy partition.",
        commands.kelpie("rehome", case.cluster, name=case.group),
    )


def _last_resort(cluster: ClusterView, partition: TopicPartition, view: PartitionView | None) -> Remedy:
    nobody = view is not None and all(cluster.is_alive(node) is False for node in view.replicas)
    first = "with one of its replicas started, " if nobody else ""
    return Remedy(
        f"Last resort: {first}elect a leader that was not in sync. Commits that only dead brokers have are "
        "lost.",
        commands.kelpie("elect", cluster, "--unclean", name=partition),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        of_one="has no coordinator",
        of_many="have no coordinator",
        when_over="no coordinator",
        names_dead_brokers=True,
        is_essential=True,
        stops_group=True,
        silences=True,
    ),
    judge_cluster=judge_rest,
    asked_for=Sign.HOME_IN_DOUBT | Sign.HOME_LEADERLESS,
)
