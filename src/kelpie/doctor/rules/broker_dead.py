"""KLP100 broker-dead

What it sees: a broker of the cluster is dead.

Why it matters: groups whose coordinator it was, and partitions that it led, move to
other brokers, where there are other replicas in sync. What has none left stops:
that is KLP101 and KLP311. Partitions of which one replica in sync is left are lost
with the next broker.

How it decides: nobody can connect to the broker, and no broker that answers lists
it as alive; or logs and outputs of tools show that it went. It is a warning when
partitions of topics that groups read have a single replica in sync because of it,
or when it has been away for five minutes; else, and if it is known to have gone in
the last five minutes, a notice: it may only be restarting. Logs, an earlier look, or
the controllers (KRaft), from which brokers fetch, say when it was last there.

What it needs: nothing but a broker that answers, or files that show which brokers
there are. Without both, or where it is unknown whether a broker is alive, it is
undetermined. Of topics that no group reads, nothing is asked. Without logs, an earlier
look and the right to describe a cluster with KRaft, nothing tells whether it is only
restarting: a replica that is alone in sync is then a warning at once.

What to do: find out why it went, and start it. Its replicas catch up by
themselves.

When it is wrong: a broker that was taken out of the cluster for good, while
partitions still name it as a replica: then reassign these. A broker that the
doctor cannot reach, and that no other broker can reach either, but clients can.

Reproduce: kelpie lab run broker-dead
"""

from collections import Counter
from collections.abc import Sequence

from kelpie.cluster import ClusterView, commands
from kelpie.cluster.health import UNCLEAN, not_dead_in_sync, succession_in
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.position_words import dead_evidence, some
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.time import Instant
from kelpie.model.words import counted, duration, listed, numbered
from kelpie.observations import OFFSETS_TOPIC, PartitionView

_RESTART_MS = 5 * 60_000
"""A restart takes less."""
_MOST_EVIDENCE = 4
_INTERNAL = {OFFSETS_TOPIC, "__transaction_state", "__share_group_state"}
"""KLP106 tells of the first."""


def judge(cluster: ClusterView, cases: Sequence[Case]) -> Judgement:
    del cases
    if not cluster.brokers:
        return undetermined("which brokers there are")
    dead = cluster.dead_brokers
    if dead:
        return _found(cluster, dead)
    unknown = [node for node, broker in sorted(cluster.brokers.items()) if broker.alive is None]
    if unknown:
        return undetermined(f"whether {numbered('broker', unknown)} {_are(unknown)} alive")
    return ABSENT


def _found(cluster: ClusterView, dead: Sequence[int]) -> Finding:
    views = [
        view
        for name in cluster.views
        if (view := cluster.view(name)) is not None and not set(dead).isdisjoint(view.replicas)
    ]
    leaderless = [view for view in views if cluster.has_leader(view.name) is False]
    last = [view for view in views if cluster.has_leader(view.name) and _is_last(cluster, view)]
    of_topics = [view for view in last if view.topic not in _INTERNAL]
    since = cluster.last_loss(dead)
    names = [str(cluster.brokers[node]) for node in dead]
    return RULE.finding(
        _severity(cluster, dead, is_hit=bool(of_topics)),
        None,
        f"{len(dead)} of {counted(len(cluster.brokers), 'broker')} {_are(dead)} dead: {listed(names)}"
        f"{f', for {duration(cluster.now - since)}' if since is not None else ''}."
        f"{_harm(leaderless, of_topics)}",
        why="Where other replicas are in sync, one of them leads. Partitions with one replica in sync are "
        "lost with the next broker, and producers with acks=all may be refused already.",
        evidence=[
            *dead_evidence(cluster, dead),
            *(Evidence.of(view, _described(view)) for view in [*leaderless, *last][:_MOST_EVIDENCE]),
        ],
        remedies=[
            Remedy(
                f"Find out why {numbered('broker', dead)} stopped, and start "
                f"{'it' if len(dead) == 1 else 'them'}: replicas catch up by themselves."
                f"{_first(cluster, dead, leaderless)}"
            )
        ],
        cause="brokers",
        brokers=dead,
        partitions=sorted(view.name for view in [*leaderless, *last]),
        since=since,
        check=commands.kafka("kafka-topics", cluster, "--describe", "--under-replicated-partitions"),
    )


def _first(cluster: ClusterView, dead: Sequence[int], leaderless: Sequence[PartitionView]) -> str:
    """Which of several dead brokers to start first, so that no record is lost. Empty if that is unknown."""
    heirs = [succession_in(cluster, view) for view in leaderless]
    if len(dead) < 2 or not heirs or not all(heir.complete for heir in heirs):
        return ""
    leads = Counter(node for heir in heirs for node in heir.to_start)
    if not leads:
        return ""
    wholly = sorted(node for node, count in leads.items() if count == len(heirs))
    total = counted(len(heirs), "partition", "partitions")
    if wholly:
        all_of_them = "the partition that has" if len(heirs) == 1 else f"all {total} that have"
        text = f" Begin with broker {listed(wholly, 'or')}: it may lead {all_of_them} no leader"
        text += ", and nothing is lost."
    else:
        shares = [f"broker {node:d} may lead {count:d}" for node, count in leads.most_common()]
        text = f" Of the {total} without a leader, {listed(shares)}: begin with these, and nothing is lost."
    risky = sorted({node for heir in heirs if heir.allows_unclean for node in heir.incomplete} & set(dead))
    if risky:
        them = "it lacks" if len(risky) == 1 else "they lack"
        text += (
            f" Keep {numbered('broker', risky)} stopped until then: {UNCLEAN} is true, and where {them} "
            "records these would be lost."
        )
    return text


def _harm(leaderless: Sequence[PartitionView], last: Sequence[PartitionView]) -> str:
    text = ""
    if leaderless:
        some_are = "has" if len(leaderless) == 1 else "have"
        text += f" {counted(len(leaderless), 'partition')} {some_are} no leader."
    if last:
        some_are = "has" if len(last) == 1 else "have"
        topics = some(sorted({view.topic for view in last}))
        text += f" {counted(len(last), 'partition')} of {topics} {some_are} one replica in sync left."
    return text


def _is_last(cluster: ClusterView, view: PartitionView) -> bool:
    return len(view.replicas) > 1 and len(not_dead_in_sync(cluster, view)) == 1


def _severity(cluster: ClusterView, dead: Sequence[int], *, is_hit: bool) -> Severity:
    seen = [_last_seen(cluster, node) for node in dead]
    went = [at for at, _ in seen if at is not None]
    is_long = any(cluster.now - at >= _RESTART_MS for at in went)
    alive = [at for _, at in seen if at is not None]
    was_just_there = len(alive) == len(seen) and all(cluster.now - at < _RESTART_MS for at in alive)
    return Severity.WARNING if is_long or (is_hit and not was_just_there) else Severity.NOTICE


def _last_seen(cluster: ClusterView, node: int) -> tuple[Instant | None, Instant | None]:
    """From when on it was away at the latest, and when it was last there."""
    outage = next((each for each in cluster.outages.get(node, ()) if each.until is None), None)
    return (outage.at_latest, outage.at_earliest) if outage is not None else (None, None)


def _described(view: PartitionView) -> str:
    in_sync = listed(view.in_sync) or "none"
    return f"{view.name}: leader {view.leader}, replicas {listed(view.replicas)}, in sync {in_sync}"


def _are(nodes: Sequence[int]) -> str:
    return "is" if len(nodes) == 1 else "are"


RULE = Rule.of(
    __name__,
    presentation=Presentation(names_dead_brokers=True, is_risk_alone=True),
    judge_cluster=judge,
)
