"""Names of KMinion."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version

from kelpie.client.admin.log_dirs import LogDirSizes
from kelpie.cluster import ClusterView
from kelpie.doctor.overview import IN_ZOOKEEPER
from kelpie.model.names import TopicPartition
from kelpie.observations.groups import CONSUMER, UNTOLD
from kelpie.web.families import COUNTER, NO_LABELS, Each, Family, Labels, Places, Row, known, labels
from kelpie.web.numbers import ClusterNumbers, GroupNumbers, LogEnd


class Families:
    UP = Family("kminion_exporter_up", "1 if the last look saw the cluster, else 0.")
    RECORDS = Family(
        "kminion_exporter_offset_consumer_records_consumed_total",
        "Records of the offsets topic that looks have read, each once.",
        COUNTER,
    )
    CLUSTER = Family("kminion_kafka_cluster_info", "The cluster; always 1.")
    BROKER = Family("kminion_kafka_broker_info", "A broker that is alive; always 1.")
    BROKER_SIZE = Family(
        "kminion_kafka_broker_log_dir_size_total_bytes", "Bytes in the log directories of the broker."
    )
    TOPIC_SIZE = Family(
        "kminion_kafka_topic_log_dir_size_total_bytes", "Bytes of the topic, with all replicas."
    )
    TOPIC = Family("kminion_kafka_topic_info", "A topic; always 1.")
    LOW = Family("kminion_kafka_topic_partition_low_water_mark", "Where the log begins.")
    LOW_SUM = Family("kminion_kafka_topic_low_water_mark_sum", "Sum of where the logs of a topic begin.")
    HIGH = Family("kminion_kafka_topic_partition_high_water_mark", "Where the log ends.")
    HIGH_SUM = Family("kminion_kafka_topic_high_water_mark_sum", "Sum of where the logs of a topic end.")
    GROUP = Family("kminion_kafka_consumer_group_info", "1 if the group is stable, else 0.")
    MEMBERS = Family("kminion_kafka_consumer_group_members", "Members of the group.")
    EMPTY = Family("kminion_kafka_consumer_group_empty_members", "Members without a partition.")
    TOPIC_MEMBERS = Family("kminion_kafka_consumer_group_topic_members", "Members that read the topic.")
    ASSIGNED = Family(
        "kminion_kafka_consumer_group_topic_assigned_partitions", "Partitions of the topic that members have."
    )
    OFFSETS = Family(
        "kminion_kafka_consumer_group_topic_offset_sum", "Sum of the committed offsets in the topic."
    )
    LAG = Family("kminion_kafka_consumer_group_topic_partition_lag", "Records of the partition left to read.")
    LAGS = Family("kminion_kafka_consumer_group_topic_lag", "Records of the topic left to read.")
    COMMITS = Family(
        "kminion_kafka_consumer_group_offset_commits_total",
        "Offsets committed, as far as looks saw them.",
        COUNTER,
    )


class KMinion:
    def __init__(self, _: str) -> None:
        """Its names have no label for the cluster."""
        self._places = Places("topic_name", "partition_id")
        self._topics = Each("topic_name")

    def of_cluster(self, numbers: ClusterNumbers) -> Iterator[Row]:
        cluster = numbers.cluster
        about = labels(version=f"kelpie-{version('kelpie-kafka')}")
        yield Families.UP, about, NO_LABELS, int(numbers.answers)
        yield Families.RECORDS, NO_LABELS, NO_LABELS, numbers.totals.records
        yield from _of_brokers(cluster, numbers.log_dirs)
        for topic, names in cluster.topics.items():
            yield from _of_topic(cluster, topic, names)
        yield from self._of_logs(numbers.ends)
        if numbers.log_dirs is not None:
            yield from self._by_topic(Families.TOPIC_SIZE, NO_LABELS, numbers.log_dirs.by_topic)

    def _of_logs(self, ends: Mapping[TopicPartition, LogEnd]) -> Iterator[Row]:
        low: Counter[str] = Counter()
        high: Counter[str] = Counter()
        for name, end in ends.items():
            if end.earliest is not None:
                low[name.topic] += end.earliest
                yield Families.LOW, NO_LABELS, self._places[name], end.earliest
            if end.latest is not None:
                high[name.topic] += end.latest
                yield Families.HIGH, NO_LABELS, self._places[name], end.latest
        yield from self._by_topic(Families.LOW_SUM, NO_LABELS, low)
        yield from self._by_topic(Families.HIGH_SUM, NO_LABELS, high)

    def of_group(self, group: GroupNumbers, numbers: ClusterNumbers, *, by_partition: bool) -> Iterator[Row]:
        row, here = group.row, labels(group_id=group.row.group)
        if row.kind != IN_ZOOKEEPER:
            yield Families.GROUP, here, _info(group), int(row.state == "Stable")
        if row.members is not None:
            yield Families.MEMBERS, here, NO_LABELS, row.members
            yield Families.EMPTY, here, NO_LABELS, group.idle
        for topic, members in group.by_topic.items():
            yield Families.TOPIC_MEMBERS, here, self._topics[topic], members.members
            yield Families.ASSIGNED, here, self._topics[topic], members.partitions
        yield Families.COMMITS, here, NO_LABELS, numbers.totals.commits.get(row.group, 0)
        offsets: defaultdict[str, int] = defaultdict(int)
        lags: defaultdict[str, int] = defaultdict(int)
        for each in group.partitions:
            topic, lag = each.name.topic, each.read_uncommitted_lag
            if each.offset is not None:
                offsets[topic] += each.offset
            if lag is not None:
                lags[topic] += lag
                if by_partition:
                    yield Families.LAG, here, self._places[each.name], lag
        yield from self._by_topic(Families.OFFSETS, here, offsets)
        yield from self._by_topic(Families.LAGS, here, lags)

    def _by_topic(self, family: Family, here: Labels, sums: Mapping[str, int]) -> Iterator[Row]:
        for topic, total in sums.items():
            yield family, here, self._topics[topic], total


def _info(group: GroupNumbers) -> Labels:
    row = group.row
    return labels(
        protocol=row.protocol,
        protocol_type=CONSUMER if row.kind == CONSUMER else group.protocol_type,
        state=row.state or UNTOLD,
        coordinator_id="" if row.coordinator is None else row.coordinator,
    )


def _of_brokers(cluster: ClusterView, log_dirs: LogDirSizes | None) -> Iterator[Row]:
    living = [broker for broker in cluster.brokers.values() if broker.alive]
    releases = sorted({broker.release for broker in living if broker.release})
    controller = "" if cluster.controller is None else cluster.controller
    yield (
        Families.CLUSTER,
        labels(
            cluster_version=releases[0] if releases else "",
            broker_count=len(living),
            controller_id=controller,
            cluster_id=cluster.cluster_id,
        ),
        NO_LABELS,
        1,
    )
    for broker in cluster.brokers.values():
        place = labels(
            broker_id=broker.node_id, address=broker.host, port=broker.port, rack_id=broker.rack or ""
        )
        if broker.alive:
            is_controller = str(broker.node_id == cluster.controller).lower()
            yield Families.BROKER, place, labels(is_controller=is_controller), 1
        if log_dirs is not None:
            yield from known(Families.BROKER_SIZE, place, NO_LABELS, log_dirs.by_broker.get(broker.node_id))


def _of_topic(cluster: ClusterView, topic: str, names: Sequence[TopicPartition]) -> Iterator[Row]:
    view = cluster.view(names[0])
    info = labels(
        topic_name=topic,
        cleanup_policy=cluster.setting("cleanup.policy", of=f"topic {topic}") or "",
        partition_count=len(names),
        replication_factor=len(view.replicas) if view is not None else "",
    )
    yield Families.TOPIC, info, NO_LABELS, 1
