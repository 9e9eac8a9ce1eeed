"""KLP201 rebalance-storm

What it sees: one generation of the group follows the other, faster than starts
and restarts of its members could explain.

Why it matters: in each rebalance all members give up their partitions (or some,
with a cooperative assignor, Kafka Streams, Kafka Connect and KIP-848) and nothing
is read until the last one has come back. Work since the last commit is done again.
A group can spend its whole life that way, and lag grows though every member is up.

How it decides: generations that follow each other within the group's own
rebalance timeout (at most 5 minutes) are one run. A rolling restart of n members
makes 2n of them, twice that where members keep what does not move (a cooperative
assignor, Kafka Streams, Kafka Connect, KIP-848), and for the tasks of a sink connector,
which leave a worker that goes and move again when it is back: more than that, and at
least 8, is a storm. A rolling restart of brokers makes generations as well, with the same
members: the coordinator moves, and consumers with a rack rejoin when a broker goes
and when it is back (KIP-881). So four of them for each broker of the group's
partitions do not count. A member that came back three times in one run makes a storm,
too, unless it is such a task. Probing rebalances, by which Kafka Streams finds out
whether a warm-up has ended, do not count; nor do rebalances of Kafka Connect in which
no worker came or went: each change of a connector makes one. Who comes and goes is
taken from the coordinator's log, from the records in __consumer_offsets, or from the
consumers' logs, whichever knows most. If only descriptions are at hand, a group that
rebalances in most of them, with other members each time, is in a storm too. If logs
say that the members that left had exceeded their poll limit, the finding names that as
the cause (KLP203).

What it needs: one of three: the right to read __consumer_offsets, the log of the
group's coordinator, or the logs of its consumers. Without them, four surveys of the
group; with fewer it is undetermined. That poll() came too late is known from
logs only.

What to do: find out why a member comes and goes: the finding names it. If members
leave because poll() came late, see KLP203; because their sessions ended, KLP204.
If they are restarted by a scheduler, look at why it kills them. Static
membership (group.instance.id) lets a member restart without a rebalance.

When it is wrong: several deployments one right after the other.

Reproduce: kelpie lab run rebalance-storm
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from kelpie.doctor.case import REBALANCING, Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.generation_changes import GenerationChange, generation_changes, runs, unassigned_ms
from kelpie.doctor.membership import (
    BROKER_LOGS,
    MOST_EVIDENCE,
    SESSION_MS,
    by_age,
    describing,
    is_late_poll,
    people,
    person_in,
    person_of,
    shortened,
    state_text,
    timeouts,
)
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.model.words import counted, duration, moment
from kelpie.observations import EventKind, GroupState

_LEAST = 8
_RETURNS = 4
"""The start, and three times back."""
_PER_BROKER = 4
"""Generations that a broker's restart may make: it goes, it is back, and the coordinator moves twice."""
_SHORTEST_GAP_MS, _LONGEST_GAP_MS = 10_000, 300_000
_LEAST_STATES = 4
_ORDINARY = ("probing rebalance", "followup rebalance", "follow-up rebalance")
"""Reasons of Kafka Streams: it looks whether a warm-up has ended, or goes on with a second round."""
_SINK_TASK = "connector-consumer-"
"""How the client ids of a sink connector's tasks begin, unless a connector overrides them."""
_LEAVING = (EventKind.MEMBER_LEFT, EventKind.LEAVING)
_NO_GENERATIONS = ("its generations: the history of __consumer_offsets", BROKER_LOGS)


def judge(case: Case) -> Judgement:
    changes = [change for change in generation_changes(case) if _counts(case, change)]
    storms = [run for run in runs(changes, _gap_ms(case)) if _is_storm(case, run)]
    if storms:
        # Without the start long before it, and the shutdown long after.
        return _found(case, max(runs(storms[-1], _quiet_ms(storms[-1])), key=len))
    states = [state for state in case.states if state.error is ErrorCode.NONE and state.at is not None]
    rebalancing = [state for state in states if state.state in REBALANCING]
    if len(states) >= _LEAST_STATES and 2 * len(rebalancing) > len(states) and _is_restless(rebalancing):
        return _seen(case, states, len(rebalancing))
    if changes or case.history_from is not None:
        return ABSENT
    return undetermined(*_NO_GENERATIONS)


def _counts(case: Case, change: GenerationChange) -> bool:
    """Whether a healthy group would not make this generation by itself."""
    reason = change.reason.lower()
    if any(words in reason for words in _ORDINARY):
        return False
    return not (case.is_connect and _has_same_members(change))


def _gap_ms(case: Case) -> int:
    known = timeouts(case)
    longest = max(known.session_ms or 0, known.rebalance_ms or 0) or _LONGEST_GAP_MS
    return min(max(longest, _SHORTEST_GAP_MS), _LONGEST_GAP_MS)


def _is_storm(case: Case, run: Sequence[GenerationChange]) -> bool:
    if len(run) < _LEAST:  # Nearly all of them: what follows looks at all members that ever were.
        return False
    counts = [change.members or 0 for change in run] + [len(row.members) for row in case.generations]
    is_sink = _is_sink(case)
    restart = 4 if case.is_incremental or is_sink else 2
    by_brokers = min(sum(_has_same_members(change) for change in run), _PER_BROKER * _brokers(case))
    if len(run) - by_brokers > max(restart * max(*counts, 1) + 2, _LEAST - 1):
        return True
    if is_sink:
        return False
    returns = Counter(name for change in run for name in change.came)
    return _tell_apart(case) and max(returns.values(), default=0) >= _RETURNS


def _is_sink(case: Case) -> bool:
    """Whether its members are tasks of a sink connector: workers start and end them as they come and go."""
    names = [member.client_id for roster in case.rosters for member in roster]
    return bool(names) and all(name.startswith(_SINK_TASK) for name in names)


def _has_same_members(change: GenerationChange) -> bool:
    return change.members is not None and not change.came and not change.went


def _brokers(case: Case) -> int:
    """How many brokers have replicas of what the group reads, and of its offsets partition."""
    names = (case.offsets_partition, *case.reads.partitions)
    views = (case.cluster.view(name) for name in names if name is not None)
    return len({node for view in views if view is not None for node in view.replicas})


def _tell_apart(case: Case) -> bool:
    """Whether no two members of one generation have the same name. Clients often share a default one."""
    names = [[person_of(member) for member in roster] for roster in case.rosters]
    return any(names) and all(len(of_roster) == len(set(of_roster)) for of_roster in names)


def _quiet_ms(run: Sequence[GenerationChange]) -> int:
    """A pause that is no part of the storm any more: ten times the usual one."""
    from statistics import median  # noqa: PLC0415 - it imports fractions and decimals, for storms alone.

    return int(max(10 * median(after.at - before.at for before, after in pairwise(run)), _SHORTEST_GAP_MS))


def _found(case: Case, run: Sequence[GenerationChange]) -> Finding:
    since, until = run[0].began or run[0].at, run[-1].at
    span = max(until - since, 1)
    quiet_ms = _quiet_ms(run)
    over = case.cluster.now - until > quiet_ms
    lost = unassigned_ms(case, since, until + quiet_ms)
    share = None if lost is None else min(lost / span, 1.0)
    went = [name for change in run for name in change.went]
    came = [name for change in run for name in change.came]
    severity = Severity.CRITICAL if not over and share is not None and share >= 0.5 else Severity.WARNING
    late = _late(case, since, until)
    if late:
        who = f" The cause: {people(late)} did not call poll() in time and left the group each time (KLP203)."
    else:
        who = f" {people(went)} left." if went else f" {people(came)} came." if came else ""
    idle = f" For {share:.0%} of that time nobody had an assignment." if share is not None else ""
    first, last = run[0].generation, run[-1].generation
    numbers = f", from {first} to {last}," if 0 <= first < last else ""
    return RULE.finding(
        by_age(case, until, severity),
        case.group,
        f"Group {case.group} {'went' if over else 'goes'} through one rebalance after the other: "
        f"{counted(len(run), 'generation')}{numbers} within {duration(span)}, one every "
        f"{duration(span / max(len(run) - 1, 1))}.{who}{idle}",
        why=_why(case),
        evidence=_evidence(run),
        remedies=_remedies(case, went or came, late),
        members=sorted({*went, *came}),
        since=since,
        until=until if over else None,
        check=describing(case, "--state"),
    )


def _late(case: Case, since: Instant, until: Instant) -> list[str]:
    """The members that left because they had exceeded their poll limit, if most of those that left did so."""
    until += SESSION_MS
    left = [event for event in case.events if event.at is not None and since <= event.at <= until]
    late = [event for event in left if is_late_poll(event)]
    others = [event for event in left if event.kind in _LEAVING and not is_late_poll(event)]
    gone = [event for event in left if event.kind is EventKind.MEMBER_EXPIRED]
    names = sorted({person_in(event) for event in late})
    innocent = [event for event in (*others, *gone) if person_in(event) not in names]
    return names if len(late) > len(innocent) else []


def _why(case: Case) -> str:
    if case.is_incremental:
        return (
            "In every rebalance the partitions that move are read by nobody until it ends, and what was read "
            "of them since the last commit is read again."
        )
    return (
        "In every rebalance its members stop reading until the last one has come back, and what was read "
        "since the last commit is read again."
    )


def _evidence(run: Sequence[GenerationChange]) -> list[Evidence]:
    reasons = {change.reason: change for change in run if change.reason}
    evidence = [Evidence.of(change, change.text) for change in shortened(run)]
    for reason, change in list(reasons.items())[:3]:
        evidence.append(Evidence(f"reason: {reason}", change.source, change.began))
    return evidence


def _remedies(case: Case, restless: Sequence[str], late: Sequence[str] = ()) -> list[Remedy]:
    if late:
        return [
            Remedy(
                f"Give {people(late, 2)} fewer records per poll (max.poll.records), or more time "
                "(max.poll.interval.ms): KLP203 has the numbers. The rebalances end with that."
            )
        ]
    first = [Remedy(f"Find out why members come and go: {people(restless, 2)}.")] if restless else []
    if case.is_connect:
        return [
            *first,
            Remedy(
                "Set scheduled.rebalance.max.delay.ms of the workers to more than a worker's restart takes: "
                "then its tasks wait for it, and a restart moves none."
            ),
        ]
    cooperative = Remedy(
        "partition.assignment.strategy=cooperative-sticky lets members read on while others come and go."
    )
    return [
        *first,
        Remedy(
            "If members are restarted on purpose, give each its own group.instance.id, and a "
            "session.timeout.ms longer than a restart takes: then a restart costs no rebalance."
        ),
        *([] if case.is_incremental else [cooperative]),
    ]


def _is_restless(rebalancing: Sequence[GroupState]) -> bool:
    """Whether these are several rebalances: the members are others each time."""
    rosters_seen = [frozenset(member.member_id for member in state.members) for state in rebalancing]
    changes = sum(before != after for before, after in pairwise(rosters_seen))
    return changes >= max(len(rosters_seen) // 2, 2)


def _seen(case: Case, states: Sequence[GroupState], rebalancing: int) -> Finding:
    return RULE.finding(
        by_age(case, states[-1].at, Severity.WARNING),
        case.group,
        f"Group {case.group} was rebalancing in {rebalancing} of {len(states)} looks at it since "
        f"{moment(states[0].at)}, with other members each time.",
        why=_why(case),
        evidence=[Evidence.of(state, state_text(state)) for state in states[-MOST_EVIDENCE:]],
        remedies=_remedies(case, ()),
        since=states[0].at,
        check=describing(case, "--state"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("rebalances again and again", "rebalance again and again", "one rebalance after the other"),
    asked_for=Sign.LOG_LINES | Sign.MANY_GENERATIONS | Sign.REBALANCING,
    otherwise=undetermined(*_NO_GENERATIONS),
    absent_for=Sign.HISTORY_READ,
)
