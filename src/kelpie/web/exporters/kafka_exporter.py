"""Names of kafka_exporter (danielqsj)."""

from collections import defaultdict
from collections.abc import Iterator

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.overview import partitions_of
from kelpie.web.families import Family, Row
from kelpie.web.snapshot import Snapshot


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


def rows(look: Snapshot) -> Iterator[Row]:
    cluster = look.diagnosis.cluster
    yield from _of_brokers(cluster)
    yield from _of_topics(cluster)
    for row in look.groups:
        if row.members is not None:
            yield Families.MEMBERS, {"consumergroup": row.group}, row.members
    for case in look.cases():
        yield from _of_group(case)


def _of_brokers(cluster: ClusterView) -> Iterator[Row]:
    living = [broker for broker in cluster.brokers.values() if broker.alive]
    yield Families.BROKERS, {}, len(living)
    for broker in living:
        yield Families.BROKER, {"address": broker.address, "id": broker.node_id}, 1


def _of_topics(cluster: ClusterView) -> Iterator[Row]:
    partitions: defaultdict[str, int] = defaultdict(int)
    for name in sorted(cluster.views):
        partitions[name.topic] += 1
        view = cluster.view(name)
        if view is None:
            continue
        labels = {"topic": name.topic, "partition": name.partition}
        yield Families.IN_SYNC, labels, len(view.in_sync)
        yield Families.LEADER, labels, view.leader
        yield Families.PREFERRED, labels, int(bool(view.replicas) and view.leader == view.replicas[0])
        yield Families.REPLICAS, labels, len(view.replicas)
        yield Families.UNDER, labels, int(len(view.in_sync) < len(view.replicas))
    for topic, number in partitions.items():
        yield Families.PARTITIONS, {"topic": topic}, number
    for name, ends in sorted(cluster.ends.items()):
        labels = {"topic": name.topic, "partition": name.partition}
        if ends[-1].latest >= 0:
            yield Families.END, labels, ends[-1].latest
        if ends[-1].earliest >= 0:
            yield Families.BEGINNING, labels, ends[-1].earliest


def _of_group(case: Case) -> Iterator[Row]:
    offsets: defaultdict[str, int] = defaultdict(int)
    lags: defaultdict[str, int] = defaultdict(int)
    for row in partitions_of(case):
        topic = row.name.topic
        labels = {"consumergroup": case.group, "topic": topic, "partition": row.name.partition}
        if row.offset is not None:
            offsets[topic] += row.offset
            yield Families.OFFSET, labels, row.offset
        if row.lag is not None:
            lags[topic] += row.lag
            yield Families.LAG, labels, row.lag
    for family, sums in ((Families.OFFSETS, offsets), (Families.LAGS, lags)):
        for topic, total in sums.items():
            yield family, {"consumergroup": case.group, "topic": topic}, total
