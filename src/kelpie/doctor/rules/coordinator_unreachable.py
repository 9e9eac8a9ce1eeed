"""KLP105 coordinator-unreachable

What it sees: the brokers agree on the group's coordinator and list it as alive,
and it cannot be used from here: no connection comes about, or its certificate,
the login or a missing answer stands in the way.

Why it matters: a consumer at the same place has the same trouble. It finds its
coordinator, cannot connect, asks again, gets the same answer, for ever. It could read
the partitions of other brokers, but without its coordinator it is assigned none.

How it decides: the leader of the group's partition of __consumer_offsets is
listed in other brokers' metadata, and could not be asked. The finding says why:
connection refused, no connection in time, a name that cannot be looked up, a
certificate that is out of date, made out to other names or signed by an unknown
authority, a login that is refused, or an answer that does not come in time (a
warning: clients wait for longer than the doctor). In logs: clients found the
coordinator and then failed to connect to it, while others list it as alive. A
survey asks again for some seconds whether another broker leads by now. If an earlier
look reached it less than a minute ago, it may have just died: that is a notice.

What it needs: metadata from one broker that answers, and the right Describe on
__consumer_offsets; or logs of clients. Without the leader's name, or if nobody
tried to connect, it is undetermined.

What to do: what fits the reason; the finding has it. Without a connection, compare
the address that the broker advertises (advertised.listeners) with one that can be
reached from the consumer's host: localhost, a name of a container network, or
another port are the usual mistakes. Else a firewall. If it died a moment ago, the
next run shows KLP101 instead: controllers take 6 to 18 s to notice.

When it is wrong: the doctor runs where consumers do not, behind another
firewall. Run it on the consumer's host.

Reproduce: kelpie lab run coordinator-unreachable
"""

from collections.abc import Sequence

from kelpie.cluster import commands
from kelpie.cluster.failovers import FAILOVER_MS
from kelpie.doctor import checks
from kelpie.doctor.case import Case
from kelpie.doctor.coordinator_replies import first_and_last
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.doctor.unreachable_brokers import is_there, trouble_of, trouble_remedy, trouble_words
from kelpie.model.words import moment
from kelpie.observations import BrokerView, Event, EventKind, PartitionView, Trouble

_LOCAL = ("localhost", "127.", "::1", "0.0.0.0")  # noqa: S104 - compared with, not bound to
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


def _was_just_there(case: Case, broker: BrokerView) -> bool:
    """Whether it may have just died: then the controller notices, and another broker takes over."""
    reached = case.cluster.last_reached.get(broker.node_id)
    return reached is not None and case.cluster.now - reached < FAILOVER_MS


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
    is_slow = trouble_of(broker) is Trouble.SLOW and not failures
    severity = Severity.WARNING if is_slow else Severity.CRITICAL
    if not failures and not is_there(broker) and _was_just_there(case, broker):
        severity = Severity.NOTICE
    return RULE.finding(
        severity,
        case.group,
        _summary(case, broker, failures),
        why="A consumer that has the same trouble can neither join nor commit, however well the broker is."
        if not is_slow
        else "Consumers wait for an answer for up to request.timeout.ms (30 s unless set), then look for "
        "their coordinator again.",
        evidence=evidence,
        remedies=[
            *_advice(case, broker),
            *([] if is_there(broker) else [_look_again(case)]),
        ],
        cause=f"broker {view.leader}",
        brokers=[view.leader],
        partitions=[view.name],
        since=failures[0].at if failures else None,
        check=checks.broker(case.cluster, broker.address),
    )


def _summary(case: Case, broker: BrokerView, failures: Sequence[Event]) -> str:
    subject = f"Group {case.group}: its coordinator, {broker},"
    if failures:
        return f"{subject} cannot be reached by its clients since {moment(failures[0].at)}."
    return f"{subject} is listed by other brokers, but {trouble_words(broker)}."


def _look_again(case: Case) -> Remedy:
    return Remedy(
        "If it has just died, the controller will notice within 18 s; look again.",
        commands.kelpie("doctor", case.cluster),
    )


def _advice(case: Case, broker: BrokerView) -> list[Remedy]:
    if not broker.host:
        return []
    # Where the cluster was asked on this very machine, such an address is right.
    is_local = broker.host.startswith(_LOCAL) and not case.cluster.bootstrap.startswith(_LOCAL)
    if is_local and not is_there(broker):
        text = (
            f"It advertises {broker.address}, which means another machine to everyone else. Set "
            "advertised.listeners in its server.properties to a name that consumers reach; restart it."
        )
        return [Remedy(text)]
    return [trouble_remedy(broker)]


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "has a coordinator that cannot be reached",
        "have coordinators that cannot be reached",
        silences=True,
        stops_group=True,
    ),
    asked_for=Sign.HOME_IN_DOUBT | Sign.LOG_LINES,
)
