"""What several rules say alike: evidence of offsets and dead brokers, commands that move offsets."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from kelpie.cluster import ClusterView, commands
from kelpie.doctor.case import Case
from kelpie.doctor.finding import Evidence, Remedy
from kelpie.doctor.positions import Point
from kelpie.errors import describe
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted, first_of, listed
from kelpie.observations import Committed, LogEnds
from kelpie.observations.positions import NO_OFFSET

_OF_KELPIE = ("--to-earliest", "--to-latest")
_MOST_NAMED = 3
MOST_EVIDENCE = 12
"""Of a thousand partitions that are all alike, so many rows are enough."""

SECOND_LOOK = "a second look at it: run the doctor again in a while, or with --watch"
NO_COORDINATOR = "whether it would go on if it had a coordinator (KLP101, KLP105)"
REBALANCES = "whether it goes on after the rebalance that is under way"
CLOCK = (
    "whether the clock here is in step with that of its coordinator: nothing newer than its last commit was "
    "seen there, so a clock here that is fast looks the same; run the doctor again in a while"
)
HISTORY = "the history of its commits: read access to __consumer_offsets"


def some(things: Sequence[object]) -> str:
    """The first of many: "orders-0, orders-1, orders-2 and 4 more"."""
    return listed(things) if len(things) <= _MOST_NAMED + 1 else first_of(things, _MOST_NAMED)


def records(number: int) -> str:
    return counted(number, "record")


def evidence_of(
    *rows: Committed | LogEnds | Point | None, name: TopicPartition | None = None
) -> list[Evidence]:
    """Raw values, as they were seen. Points do not know their partition: `name` says it."""
    evidence = []
    for row in rows:
        match row:
            case Committed():
                evidence.append(Evidence.of(row, f"{row.name}: {_committed(row)}"))
            case LogEnds():
                evidence.append(Evidence.of(row, f"{row.name}: {_ends(row)}"))
            case Point():
                place = _offset(row.offset, row.leader_epoch)
                text = f"{name}: committed {place}" if row.is_commit else f"{name}: stood at {place}"
                evidence.append(Evidence.of(row, text))
    return evidence


def state_evidence(case: Case) -> list[Evidence]:
    """The state of the group, as it was described last."""
    state = case.described
    if state is None:
        return []
    return [Evidence.of(state, f"group is {state.state} with {counted(len(state.members), 'member')}")]


def _committed(row: Committed) -> str:
    if row.error:
        return f"error {describe(row.error)} instead of the committed offset"
    return f"committed offset is {_offset(row.offset, row.leader_epoch)}"


def _offset(offset: int, leader_epoch: int) -> str:
    if offset == NO_OFFSET:
        return "none"
    return f"{offset}" + (f" (leader epoch {leader_epoch})" if leader_epoch >= 0 else "")


def _ends(row: LogEnds) -> str:
    if row.error:
        return f"error {describe(row.error)} instead of its ends"
    parts = []
    if row.earliest != NO_OFFSET:
        parts.append(f"the log begins at {row.earliest}")
    # The two are asked one after the other: a stable offset beyond the end is only the newer answer.
    if row.stable != NO_OFFSET and (row.latest == NO_OFFSET or row.stable < row.latest):
        parts.append(f"is stable up to {row.stable}")
    if row.latest != NO_OFFSET:
        parts.append(f"ends at {row.latest}" if parts else f"the log ends at {row.latest}")
    return listed(parts)


def dead_evidence(cluster: ClusterView, nodes: Iterable[int]) -> list[Evidence]:
    """Of these brokers, those that are dead, and why they are considered so."""
    brokers = [broker for node in nodes if (broker := cluster.brokers.get(node)) and broker.alive is False]
    return [Evidence.of(broker, f"{broker} is dead: {broker.reason}") for broker in brokers]


def reset(case: Case, text: str, names: Iterable[TopicPartition], *to: object) -> Remedy:
    """Move the group in these partitions; `to` is an option of kelpie reset, or of Kafka's own tool."""
    by_topic: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        by_topic[name.topic].append(str(name.partition))
    places = [f"{topic}:{','.join(partitions)}" for topic, partitions in by_topic.items()]
    topics = [word for place in places for word in ("--topic", place)]
    if to[0] in _OF_KELPIE:
        return Remedy(text, commands.kelpie("reset", case.cluster, *to, *topics, name=case.group))
    words = ("--group", case.group, *topics, "--reset-offsets", *to, "--dry-run")
    return Remedy(text, commands.kafka("kafka-consumer-groups", case.cluster, *words))


def topic_setting(cluster: ClusterView, topic: str, name: str) -> str | None:
    """The topic's own setting, or that of the brokers for all topics."""
    of_topic = cluster.setting(name, of=f"topic {topic}")
    return of_topic if of_topic is not None else cluster.setting(f"log.{name}")


def keep_longer(cluster: ClusterView, topic: str) -> Remedy:
    """Twice as long as now, so never shorter than configured."""
    now = topic_setting(cluster, topic, "retention.ms") or ""
    if not now.isdigit():
        return Remedy(
            f"Keep records of {topic} until it has caught up: raise retention.ms or retention.bytes."
        )
    longer = f"retention.ms={2 * int(now)}"
    words = ("--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", longer)
    return Remedy(
        f"Keep records of {topic} twice as long, until the group has caught up.",
        commands.kafka("kafka-configs", cluster, *words),
    )
