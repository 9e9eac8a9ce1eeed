"""KLP507 group-too-large

What it sees: a group of Kafka 0.8 (one that coordinates through ZooKeeper) has so many
consumers that, with its settings, a round of restarts is likely to leave one of them
without partitions.

Why it matters: whenever a consumer dies, all others rebalance, and one that must
claim a partition of the dead one may give up (KLP501). The more consumers there are,
the more often one of them dies or is killed.

How it decides: the chance that a rebalance fails after one consumer was killed and
another one has started, by the formula to which simulation and real 0.8.2.2 agree
(kelpie.zookeeper.likelihood), for the number of consumers and partitions and for
the settings of this group; then the chance that this happens at least once while
every consumer is killed and started once. It is reported from 40 % on. Where the
retries end before the session does, KLP504 is reported instead, whatever the size.

What it needs: one look at the group's tree (read access to /consumers and /brokers in
ZooKeeper), and the settings of its consumers: their .properties files, or their logs
from the start on. Without either it is undetermined.

What to do: set more retries; the finding says how many. Fewer consumers with more
threads each, or one group for each topic, make rebalances rarer.

When it is wrong: consumers that are always closed with shutdown() leave no nodes
behind, and then no size is too large.

Reproduce: kelpie lab run zookeeper-group-too-large
"""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.rules.timeouts_contradict import SETTINGS
from kelpie.doctor.zookeeper.looks import Look, looks
from kelpie.doctor.zookeeper.timeouts import Timeouts, timeouts
from kelpie.doctor.zookeeper.words import TREE, quoted_look, show_node
from kelpie.zookeeper.likelihood import Disturbance, failure_probability

_LIKELY = 0.4
_UNLIKELY = 0.01
_MOST_RETRIES = 100


def judge(case: Case) -> Judgement:
    all_looks = [look for look in looks(case) if look.expected]
    if not all_looks:
        return undetermined(TREE)
    known = timeouts(case)
    if not known:
        return undetermined(SETTINGS)
    weakest = min(known.values(), key=lambda row: row.waits_ms - row.session_ms)
    if weakest.waits_ms < max(row.session_ms for row in known.values()):
        return ABSENT  # KLP504
    look = all_looks[-1]
    members = len(look.registrations)
    chance = of_a_round(members, _partitions(look), weakest)
    return _finding(case, look, weakest, chance) if chance >= _LIKELY else ABSENT


def of_a_round(members: int, partitions: int, settings: Timeouts, retries: int | None = None) -> float:
    """The chance of at least one failure while each member is killed and started once."""
    once = failure_probability(
        Disturbance.KILL_AND_JOIN,
        members=members,
        partitions=partitions,
        retries=settings.retries if retries is None else retries,
        backoff_ms=settings.backoff_ms,
        session_timeout_ms=settings.session_ms,
    )
    return float(1 - (1 - once) ** members)


def _partitions(look: Look) -> int:
    """Of the largest topic: ranges are the same in each."""
    counts: dict[str, int] = {}
    for name in look.expected or ():
        counts[name.topic] = counts.get(name.topic, 0) + 1
    return max(counts.values())


def _finding(case: Case, look: Look, settings: Timeouts, chance: float) -> Finding:
    members, partitions = len(look.registrations), _partitions(look)
    enough = next(
        (
            retries
            for retries in range(settings.retries, _MOST_RETRIES)
            if of_a_round(members, partitions, settings, retries) < _UNLIKELY
        ),
        _MOST_RETRIES,
    )
    small = next(size for size in range(members, 0, -1) if of_a_round(size, partitions, settings) < _LIKELY)
    return RULE.finding(
        Severity.NOTICE,
        case.group,
        f"Group {case.group} has {members} consumers: if each is killed and started once, a rebalance fails "
        f"with a probability of {100 * chance:.0f} %.",
        why="A consumer that gives up a rebalance reads nothing until somebody restarts it.",
        evidence=[
            quoted_look(look),
            Evidence(
                f"rebalance.max.retries={settings.retries}, rebalance.backoff.ms={settings.backoff_ms}, "
                f"session timeout {settings.session_ms} ms"
            ),
        ],
        remedies=[
            Remedy(
                f"Set rebalance.max.retries={enough}: then it is less than {100 * _UNLIKELY:.0f} % at this "
                "size."
            ),
            Remedy(f"Or have no more than {small} consumers in the group, with more threads each."),
        ],
        check=show_node(case, "ls", "ids"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("is too large for its settings", "are too large for their settings"),
    of_zookeeper=True,
)
