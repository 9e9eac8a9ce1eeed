"""What the rules on positions say alike: evidence of offsets and log ends, and commands that move offsets."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from kelpie.cluster import ClusterView
from kelpie.cluster.commands import address, connecting
from kelpie.doctor.case import Case
from kelpie.doctor.finding import Evidence, Remedy
from kelpie.doctor.positions import Point
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.quoting import quoted
from kelpie.model.words import counted, listed
from kelpie.observations import Committed, LogEnds, OpenTransaction
from kelpie.observations.positions import NO_OFFSET

_OF_KELPIE = ("--to-earliest", "--to-latest")
MOST_NAMED = 3
MOST_EVIDENCE = 12
"""Of a thousand partitions that are all alike, so many rows are enough."""

SECOND_LOOK = "a second look at it: run the doctor again in a while, or with --watch"
HISTORY = "the history of its commits: read access to __consumer_offsets"


def some(things: Sequence[object], most: int = MOST_NAMED) -> str:
    """The first of many: "orders-0, orders-1, orders-2 and 4 more"."""
    if len(things) <= most + 1:
        return listed(things)
    return f"{', '.join(map(str, things[:most]))} and {len(things) - most} more"


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
                evidence.append(Evidence(f"{row.name}: {_committed(row)}", row.source, row.at))
            case LogEnds():
                evidence.append(Evidence(f"{row.name}: {_ends(row)}", row.source, row.at))
            case Point():
                verb = "committed" if row.is_commit else "stood at"
                evidence.append(
                    Evidence(f"{name}: {verb} {_offset(row.offset, row.leader_epoch)}", row.source, row.at)
                )
            case None:
                pass
    return evidence


def _committed(row: Committed) -> str:
    if row.error:
        return f"error {row.error} {ErrorCode(row.error).name} instead of the committed offset"
    return f"committed offset is {_offset(row.offset, row.leader_epoch)}"


def _offset(offset: int, leader_epoch: int) -> str:
    if offset == NO_OFFSET:
        return "none"
    return f"{offset}" + (f" (leader epoch {leader_epoch})" if leader_epoch >= 0 else "")


def _ends(row: LogEnds) -> str:
    if row.error:
        return f"error {row.error} {ErrorCode(row.error).name} instead of its ends"
    parts = []
    if row.earliest != NO_OFFSET:
        parts.append(f"the log begins at {row.earliest}")
    # The two are asked one after the other: a stable offset beyond the end is only the newer answer.
    if row.stable != NO_OFFSET and (row.latest == NO_OFFSET or row.stable < row.latest):
        parts.append(f"is stable up to {row.stable}")
    if row.latest != NO_OFFSET:
        parts.append(f"ends at {row.latest}" if parts else f"the log ends at {row.latest}")
    return listed(parts)


def tool(cluster: ClusterView, name: str) -> str:
    """Kafka's own tool, led to this cluster."""
    return f"{name} --bootstrap-server {quoted(address(cluster))}"


def reset(case: Case, text: str, names: Iterable[TopicPartition], to: str) -> Remedy:
    """Move the group in these partitions; `to` is an option of kelpie reset, or of Kafka's own tool."""
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for name in sorted(names):
        by_topic[name.topic].append(name.partition)
    which = [f"{topic}:{','.join(map(str, own))}" for topic, own in by_topic.items()]
    topics = " ".join(f"--topic {quoted(each)}" for each in which)
    if to in _OF_KELPIE:
        return Remedy(
            text, f"kelpie reset {connecting(case.cluster)}{quoted(case.group)} {to} {topics} --apply"
        )
    command = (
        f"{tool(case.cluster, 'kafka-consumer-groups.sh')} --group {quoted(case.group)} {topics} "
        f"--reset-offsets {to} --execute"
    )
    return Remedy(text, command)


def topic_setting(cluster: ClusterView, topic: str, name: str) -> str | None:
    """A topic's own, or what the brokers have for all."""
    own = cluster.setting(name, of=f"topic {topic}")
    return own if own is not None else cluster.setting(f"log.{name}")


def keep_longer(cluster: ClusterView, topic: str) -> Remedy:
    """Twice as long as now, so never shorter than configured."""
    now = topic_setting(cluster, topic, "retention.ms") or ""
    if not now.isdigit():
        return Remedy(
            f"Keep records of {topic} until it has caught up: raise retention.ms or retention.bytes."
        )
    return Remedy(
        f"Keep records of {topic} twice as long, until the group has caught up.",
        f"{tool(cluster, 'kafka-configs.sh')} --alter --entity-type topics --entity-name {quoted(topic)} "
        f"--add-config retention.ms={2 * int(now)}",
    )


def abort(cluster: ClusterView, transaction: OpenTransaction) -> list[Remedy]:
    """Abort a hanging transaction: for brokers since 3.0, and for older ones."""
    begin = f"{tool(cluster, 'kafka-transactions.sh')} abort --topic {quoted(transaction.topic)}"
    where = f"{begin} --partition {transaction.partition}"
    return [
        Remedy(
            "If its producer is gone for good, abort the transaction; its records are never seen then.",
            f"{where} --start-offset {transaction.started_at_offset}",
        ),
        Remedy(
            "The same for brokers older than 3.0.",
            f"{where} --producer-id {transaction.producer_id} --producer-epoch {transaction.producer_epoch} "
            f"--coordinator-epoch {max(transaction.coordinator_epoch, 0)}",
        ),
    ]
