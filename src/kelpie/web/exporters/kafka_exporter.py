"""Names of kafka_exporter (danielqsj)."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from kelpie.cluster import ClusterView
from kelpie.web.families import NO_LABELS, Each, Family, Places, Row, known, labels
from kelpie.web.numbers import ClusterNumbers, GroupNumbers


class Families:
    BROKERS = Family("kafka_brokers", "Brokers of the cluster that are alive.")
    BROKER = Family("kafka_broker_info", "Address of a broker; always 1.")
    PARTITIONS = Family("kafka_topic_partitions", "Partitions of the topic.")
    END = Family("kafka_topic_partition_current_offset", "Where the log ends.")
    BEGINNING = Family("kafka_topic_partition_oldest_offset", "Where the log begins.")
    IN_SYNC = Family("kafka_topic_partition_in_sync_replica", "Replicas in sync.")
    LEADER = Family("kafka_topic_partition_leader", "The broker that leads it; -1: none.")
    PREFERRED = Family("kafka_topic_partition_leader_is_preferred", "1 if its first replica leads it.")
    REPLICAS = Family("kafka_topic_partition_replicas", "Replicas of the partition.")
    UNDER = Family("kafka_topic_partition_under_replicated_partition", "1 if a replica is not in sync.")
    OFFSET = Family("kafka_consumergroup_current_offset", "The committed offset.")
    OFFSETS = Family("kafka_consumergroup_current_offset_sum", "Sum of the committed offsets in a topic.")
    LAG = Family("kafka_consumergroup_lag", "Records of the partition left to read.")
    LAGS = Family("kafka_consumergroup_lag_sum", "Records of the topic left to read, as far as known.")
    MEMBERS = Family("kafka_consumergroup_members", "Members of the group.")


class KafkaExporter:
    def __init__(self, _: str) -> None:
        """Its names have no label for the cluster."""
        self._places = Places()
        self._topics = Each("topic")

    def of_cluster(self, numbers: ClusterNumbers) -> Iterator[Row]:
        cluster = numbers.cluster
        living = [broker for broker in cluster.brokers.values() if broker.alive]
        yield Families.BROKERS, NO_LABELS, NO_LABELS, len(living)
        for broker in living:
            yield Families.BROKER, labels(address=broker.address, id=broker.node_id), NO_LABELS, 1
        yield from self._of_topics(cluster)
        for name, end in numbers.ends.items():
            yield from known(Families.END, NO_LABELS, self._places[name], end.latest)
            yield from known(Families.BEGINNING, NO_LABELS, self._places[name], end.earliest)

    def _of_topics(self, cluster: ClusterView) -> Iterator[Row]:
        partitions: Counter[str] = Counter()
        for name in sorted(cluster.views):
            partitions[name.topic] += 1
            view = cluster.view(name)
            if view is None:
                continue
            values = (
                (Families.IN_SYNC, len(view.in_sync)),
                (Families.LEADER, view.leader),
                (Families.PREFERRED, int(bool(view.replicas) and view.leader == view.replicas[0])),
                (Families.REPLICAS, len(view.replicas)),
                (Families.UNDER, int(len(view.in_sync) < len(view.replicas))),
            )
            for family, value in values:
                yield family, NO_LABELS, self._places[name], value
        for topic, number in partitions.items():
            yield Families.PARTITIONS, NO_LABELS, self._topics[topic], number

    def of_group(self, group: GroupNumbers, _: ClusterNumbers, *, by_partition: bool) -> Iterator[Row]:
        here = labels(consumergroup=group.row.group)
        yield from known(Families.MEMBERS, here, NO_LABELS, group.row.members)
        offsets: defaultdict[str, int] = defaultdict(int)
        lags: defaultdict[str, int] = defaultdict(int)
        for row in group.partitions:
            topic, place, lag = row.name.topic, self._places[row.name], row.read_uncommitted_lag
            if row.offset is not None:
                offsets[topic] += row.offset
                if by_partition:
                    yield Families.OFFSET, here, place, row.offset
            if lag is not None:
                lags[topic] += lag
                if by_partition:
                    yield Families.LAG, here, place, lag
        for family, sums in ((Families.OFFSETS, offsets), (Families.LAGS, lags)):
            for topic, total in sums.items():
                yield family, here, self._topics[topic], total
