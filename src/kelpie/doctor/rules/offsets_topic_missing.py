"""KLP104 offsets-topic-missing

What it sees: there is no topic __consumer_offsets; or brokers say that they
cannot create it; or it is there and hidden from the doctor's user.

Why it matters: every group lives on a partition of it. Without it no group has
a coordinator: consumers wait, and hear error 15 (COORDINATOR_NOT_AVAILABLE) if
they listen. Consumers without a group, and producers, notice nothing.

How it decides: brokers describe no such topic. Kafka creates it when the first
consumer asks for its coordinator, with offsets.topic.replication.factor
replicas (3 unless set); since 0.11 that fails while fewer brokers are alive,
again and again, with nothing but a line in the broker's log. A new cluster that
no group has used yet simply has none: that is a notice. Where brokers describe no
such topic and list groups all the same, it is there and hidden, as managed
services do: that is a notice, too, and says what cannot be judged.

What it needs: an answer of one broker, and the right Describe on
__consumer_offsets. Where that right is refused openly, and where no broker was
asked, it is undetermined.

What to do: start brokers until there are as many as the replication factor, or
lower it in every broker's server.properties. It is created by the next lookup.
If it was deleted, all committed offsets are gone with it: give every group its
position back (kelpie reset, from the last known commits).

When it is wrong: the topic is hidden, and no group has been used for so long that
no broker lists one. Compare KLP107.

Reproduce: kelpie lab run offsets-topic-missing
"""

from collections.abc import Sequence

from kelpie.cluster import ClusterView, commands
from kelpie.doctor import checks
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, quotes, undetermined
from kelpie.doctor.rule import Rule
from kelpie.model.words import counted, first_of
from kelpie.observations import OFFSETS_TOPIC, Event, EventKind

_FACTOR = "offsets.topic.replication.factor"


def judge(cluster: ClusterView, cases: Sequence[Case]) -> Sequence[Finding] | Judgement:
    if cluster.offsets_topic_hidden:
        return [_hidden(cluster, cases)]
    if cluster.offsets_partitions:
        return ABSENT
    refusals = [event for event in cluster.events if _refuses_topic(event)]
    if cluster.offsets_partitions is None and not refusals:
        return undetermined(f"whether {OFFSETS_TOPIC} exists")
    return [_found(cluster, len(cases), refusals)]


def _refuses_topic(event: Event) -> bool:
    return event.kind is EventKind.COORDINATOR_REFUSED and (
        event.topic == OFFSETS_TOPIC or OFFSETS_TOPIC in event.text
    )


def _hidden(cluster: ClusterView, cases: Sequence[Case]) -> Finding:
    listed = [case.group for case in cases if case.listed]
    return RULE.finding(
        Severity.NOTICE,
        None,
        f"{OFFSETS_TOPIC} is hidden from this user: brokers describe no such topic, and list "
        f"{counted(len(listed), 'group')}, which live on it.",
        why="Groups work. What is read from that topic is missing here: who leads a group's partition, its "
        "replicas, and the history of commits.",
        evidence=[
            Evidence(f"{OFFSETS_TOPIC} is not among the topics that brokers describe", at=cluster.now),
            *([Evidence(f"listed all the same: {first_of(listed, 5)}", at=cluster.now)] if listed else []),
        ],
        remedies=[Remedy("Give the doctor's user the right Describe on it, if your service allows that.")],
        cause=OFFSETS_TOPIC,
        check=checks.offsets_topic(cluster),
    )


def _found(cluster: ClusterView, waiting: int, refusals: Sequence[Event]) -> Finding:
    living = sum(bool(broker.alive) for broker in cluster.brokers.values())
    factor = _factor(cluster)
    too_few = factor is not None and living < factor
    evidence = [Evidence(f"{OFFSETS_TOPIC} is not among the topics that brokers know", at=cluster.now)]
    if factor is not None:
        evidence.append(Evidence(f"{_FACTOR} = {factor}; brokers alive: {living}"))
    if waiting:
        severity = Severity.CRITICAL
        why = "No group has a coordinator: nobody can join, commit, or fetch committed offsets."
    else:
        severity = Severity.WARNING if too_few or refusals else Severity.NOTICE
        why = "The first consumer that asks for its coordinator makes Kafka create it. No group is known yet."
    return RULE.finding(
        severity,
        None,
        _summary(factor, living, too_few, waiting),
        why=why,
        evidence=evidence + quotes(refusals[-1:]),
        remedies=_remedies(cluster, factor, living, waiting),
        cause=OFFSETS_TOPIC,
        brokers=cluster.dead_brokers,
        since=refusals[0].at if refusals else None,
        check=checks.offsets_topic(cluster),
    )


def _summary(factor: int | None, living: int, too_few: bool, waiting: int) -> str:
    if too_few:
        return (
            f"There is no {OFFSETS_TOPIC}, and it cannot be created: it is to have {factor} replicas, and "
            f"{counted(living, 'broker is', 'brokers are')} alive."
        )
    if waiting:
        return f"There is no {OFFSETS_TOPIC}, and so no coordinator for any of {counted(waiting, 'group')}."
    return f"There is no {OFFSETS_TOPIC} yet: no group has been used in this cluster."


def _remedies(cluster: ClusterView, factor: int | None, living: int, waiting: int) -> list[Remedy]:
    remedies = []
    if factor is not None and living < factor:
        text = (
            f"Start {counted(factor - living, 'broker')} more; or set {_FACTOR}={living} in every broker's "
            "server.properties and restart them. Kafka then creates the topic by itself."
        )
        remedies.append(Remedy(text))
    if waiting:
        text = (
            "If the topic was deleted, the offsets are gone with it. Once it is there again, give each group "
            "its last known position. Folders with copies of the topic, from disks, go behind the option."
        )
        reset = commands.kelpie("reset", cluster, "--to-last-known", name="GROUP")
        remedies.append(Remedy(text, reset))
    return remedies


def _factor(cluster: ClusterView) -> int | None:
    """None for Kafka 0.9 and 0.10, which take as many replicas as there are brokers."""
    is_old = any(broker.release.startswith(("0.9", "0.10")) for broker in cluster.brokers.values())
    return None if is_old else cluster.number(_FACTOR)


RULE = Rule.of(__name__, judge_cluster=judge)
