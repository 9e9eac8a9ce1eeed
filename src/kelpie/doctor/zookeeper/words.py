"""How the rules about groups of ZooKeeper speak of members, partitions and what they lack."""

from collections.abc import Iterable

from kelpie.cluster import ClusterView, commands
from kelpie.doctor.case import Case
from kelpie.doctor.finding import Evidence, Remedy
from kelpie.doctor.zookeeper.looks import Look, Standing, lag_of
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import counted, duration, first_of, moment, ranges
from kelpie.observations import OwnerNode

LOGS = "the logs of its consumers"
TREE = "its tree in ZooKeeper (kelpie doctor --zookeeper, or two dumps some seconds apart)"
SECOND_LOOK = "a second look at ZooKeeper: one can catch a rebalance half way"
ENDS = "where the logs of its partitions end (-b, and the right Describe on its topics)"
PARTITIONS = "the subscriptions of all its members, or the partitions of its topics"
_MOST_NAMES = 4


def short(case: Case, member: str) -> str:
    """The consumer id without the group, which stands in front of every one."""
    return member.removeprefix(f"{case.group_id}_")


def people(case: Case, members: Iterable[str]) -> str:
    return first_of([short(case, member) for member in sorted(set(members))], _MOST_NAMES)


def places(names: Iterable[TopicPartition]) -> str:
    """As in "partitions 0-2, 5 of orders"."""
    by_topic: dict[str, list[int]] = {}
    for name in sorted(set(names)):
        by_topic.setdefault(name.topic, []).append(name.partition)
    parts = [
        f"{'partition' if len(numbers) == 1 else 'partitions'} {ranges(numbers)} of {topic}"
        for topic, numbers in by_topic.items()
    ]
    return first_of(parts, _MOST_NAMES)


def waiting(case: Case, names: Iterable[TopicPartition]) -> str:
    """What the partitions cost: "; 1,204 records wait there". Empty if that is unknown."""
    lag = lag_of(case, names)
    return f"; {counted(lag, 'record')} {'waits' if lag == 1 else 'wait'} there" if lag else ""


def seen_twice(standing: Standing) -> Evidence:
    """The two looks between which nothing has changed."""
    first, last = standing.first, standing.last
    return Evidence.of(
        last.row,
        f"the same members and owners as {duration(last.at - first.at)} before ({first.row.source})",
    )


def quoted_look(look: Look) -> Evidence:
    owned = len(look.owners)
    members = counted(len(look.registrations), "member")
    return Evidence.of(look.row, f"{members} registered, {counted(owned, 'partition')} with an owner")


def quoted_owner(look: Look, owner: OwnerNode) -> Evidence:
    session = f", session {owner.session:#x}" if owner.session else ""
    return Evidence.of(
        look.row, f"owners/{owner.topic}/{owner.partition} = {owner.thread}{session}, {_since(owner.created)}"
    )


def _since(at: Instant | None) -> str:
    return f"since {moment(at)}" if at is not None else "since a time that is not known"


def show_node(case: Case, action: str, *parts: object) -> str:
    """The command of Kafka's own shell for ZooKeeper that shows a node of the group's tree."""
    path = "/".join(("/consumers", case.group_id or case.group, *map(str, parts)))
    return commands.zookeeper_shell(case.cluster, action, path)


def show_owner(case: Case, names: Iterable[TopicPartition]) -> str:
    """The same of the first partition's owner."""
    first = min(names, default=None)
    return show_node(case, "get", "owners", *first) if first is not None else show_node(case, "ls", "owners")


def look_again(cluster: ClusterView) -> Remedy:
    """How to see it live."""
    return Remedy("Look at it now.", commands.look_at_zookeeper(cluster))


RESTART = Remedy(
    "Restart the members that failed. Each registers itself anew, which makes all members of the group "
    "rebalance: so restart them one at a time, and wait until every partition has an owner again. `kelpie "
    "guard -- COMMAND…` restarts a consumer that gives up."
)
OUTLAST = Remedy(
    "Give a rebalance more time than a session: (rebalance.max.retries − 1) × rebalance.backoff.ms must be "
    "more than zookeeper.session.timeout.ms plus a tick of ZooKeeper (tickTime, usually 2000 ms). Then a "
    "dead owner's nodes are gone before the last try."
)
