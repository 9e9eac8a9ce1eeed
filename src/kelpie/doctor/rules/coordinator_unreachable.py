"""KLP105 coordinator-unreachable

What it sees: the brokers agree on the group's coordinator and say that it is
alive, and no connection to it comes about from here.

Why it matters: a consumer at the same place has the same trouble. It finds its
coordinator, cannot connect, asks again, gets the same answer, for ever. Records of
other brokers' partitions it could read; it never gets so far.

How it decides: the leader of the group's partition of __consumer_offsets is
listed in other brokers' metadata, and could not be connected to: refused, no
answer, a name that cannot be looked up. In logs: clients found the coordinator
and then failed to connect to it, while others say that it is alive.

What to do: compare the address that the broker advertises (advertised.listeners)
with one that can be reached from the consumer's host: localhost, a name of a
container network, or another port are the usual mistakes. Else a firewall, or a
broker that hangs. If it died a moment ago, the next run shows KLP101 instead:
controllers take 6 to 18 s to notice.

When it is wrong: the doctor runs where consumers do not, behind another
firewall. Run it on the consumer's host.

Reproduce: kelpie lab run coordinator-unreachable
"""

from collections.abc import Sequence

from kelpie.cluster import commands
from kelpie.doctor.case import Case
from kelpie.doctor.coordinator_replies import first_and_last
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.quoting import quoted
from kelpie.model.words import moment
from kelpie.observations import BrokerView, Event, EventKind, PartitionView

_LOCAL = ("localhost", "127.", "::1", "0.0.0.0")
_ATTEMPTS = 2
"""One failed connection happens whenever a broker restarts."""
_SUCCESSES = (EventKind.JOINED, EventKind.CONSUMED, EventKind.ASSIGNED)


def judge(case: Case) -> Judgement:
    partition = case.offsets_partition
    if partition is None:
        return undetermined("the number of partitions of __consumer_offsets")
    view = case.cluster.view(partition)
    if view is None:
        return undetermined(f"the leader of {partition}")
    broker = case.cluster.brokers.get(view.leader)
    if view.leader < 0 or (broker is not None and broker.alive is False):
        return ABSENT  # KLP101.
    failures = _failures(case, view.leader)
    if broker is not None and broker.alive is None and _was_tried(case, broker):
        return _found(case, view, broker, failures)
    if len(failures) >= _ATTEMPTS:
        return _found(case, view, broker or BrokerView(view.leader), failures)
    if broker is None or broker.alive is None:
        return undetermined(f"whether {case.cluster.broker_name(view.leader)} can be reached")
    return ABSENT


def _was_tried(case: Case, broker: BrokerView) -> bool:
    names = (str(broker.node_id), str(broker))
    return any(row.kind == "broker" and row.name in names for row in case.cluster.unasked)


def _failures(case: Case, leader: int) -> Sequence[Event]:
    """Connections of this group's clients to its coordinator that failed, if nothing has worked since."""
    last_success = max((event.at or 0 for event in case.events_of(*_SUCCESSES)), default=0)
    failures = case.events_of(EventKind.CONNECTION_FAILED)
    return [event for event in failures if event.node == leader and (event.at or 0) > last_success]


def _found(case: Case, view: PartitionView, broker: BrokerView, failures: Sequence[Event]) -> Finding:
    evidence = [Evidence.of(view, f"{view.name}: leader {view.leader}")]
    if broker.alive is None and broker.reason:
        evidence.append(Evidence.of(broker, f"{broker}: {broker.reason}"))
    if failures:
        evidence += first_and_last(failures)
    return RULE.finding(
        Severity.CRITICAL,
        case.group,
        f"Group {case.group}: its coordinator, {broker}, is said to be alive and cannot be reached"
        + (" from here." if not failures else f" by its clients since {moment(failures[0].at)}."),
        why="Whoever cannot connect to the coordinator can neither join nor commit, however well it is.",
        evidence=evidence,
        remedies=[
            *_advice(case, broker),
            Remedy(
                "If it has just died, the controller will notice within 18 s; look again.",
                commands.kelpie("doctor", case.cluster),
            ),
        ],
        cause=f"broker {view.leader}",
        brokers=[view.leader],
        partitions=[view.name],
        since=failures[0].at if failures else None,
    )


def _advice(case: Case, broker: BrokerView) -> list[Remedy]:
    if not broker.host:
        return []
    # Where the cluster was asked on this very machine, such an address is right.
    if broker.host.startswith(_LOCAL) and not case.cluster.bootstrap.startswith(_LOCAL):
        text = (
            f"It advertises {broker.address}, which means another machine to everyone else. Set "
            "advertised.listeners in its server.properties to a name that consumers reach; restart it."
        )
        return [Remedy(text)]
    if "looked up" in broker.reason:
        text = (
            f"Its name {broker.host} is not known here: is it one of a container network? Set "
            "advertised.listeners to a name that consumers can look up; restart it."
        )
        return [Remedy(text, f"getent hosts {quoted(broker.host)}")]
    text = (
        "See from the consumer's host whether anything listens there: a firewall, another port, a broker "
        "that hangs?"
    )
    return [Remedy(text, f"nc -vz {quoted(broker.host)} {broker.port}")]


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "cannot reach its coordinator", "cannot reach their coordinator", silences=True, stops_group=True
    ),
)
