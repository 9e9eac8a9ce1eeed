"""Names of KMinion."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib.metadata import version

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.overview import GroupOverview, idle_members, partitions_of
from kelpie.model.names import TopicPartition
from kelpie.web.families import Family, Row
from kelpie.web.snapshot import Snapshot


class Families:
    UP = Family("kminion_exporter_up", "1 if the last look saw the cluster, else 0.")
    BROKER = Family("kminion_kafka_broker_info", "A broker that is alive; always 1.")
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


def rows(look: Snapshot) -> Iterator[Row]:
    cluster = look.diagnosis.cluster
    yield Families.UP, {"version": f"kelpie-{version('kelpie-kafka')}"}, int(look.saw_anything)
    for broker in cluster.brokers.values():
        if broker.alive:
            labels = {"broker_id": broker.node_id, "address": broker.host, "port": broker.port}
            yield Families.BROKER, {**labels, "rack_id": broker.rack or "", "is_controller": ""}, 1
    yield from _of_topics(cluster)
    by_name = {row.group: row for row in look.groups}
    for case in look.cases():
        yield from _of_group(case, by_name[case.group])


def _of_topics(cluster: ClusterView) -> Iterator[Row]:
    by_topic: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for name in sorted(cluster.views):
        by_topic[name.topic].append(name)
    for topic, names in by_topic.items():
        view = cluster.view(names[0])
        policy = cluster.setting("cleanup.policy", of=f"topic {topic}") or ""
        replicas = len(view.replicas) if view is not None else ""
        info = {"cleanup_policy": policy, "partition_count": len(names), "replication_factor": replicas}
        yield Families.TOPIC, {"topic_name": topic, **info}, 1
    for each, whole, value in (
        (Families.LOW, Families.LOW_SUM, "earliest"),
        (Families.HIGH, Families.HIGH_SUM, "latest"),
    ):
        sums: defaultdict[str, int] = defaultdict(int)
        for name, ends in sorted(cluster.ends.items()):
            offset: int = getattr(ends[-1], value)
            if offset >= 0:
                sums[name.topic] += offset
                yield each, {"topic_name": name.topic, "partition_id": name.partition}, offset
        yield from ((whole, {"topic_name": topic}, total) for topic, total in sums.items())


def _of_group(case: Case, row: GroupOverview) -> Iterator[Row]:
    group = {"group_id": case.group}
    if row.state:
        coordinator = "" if row.coordinator is None else row.coordinator
        kind = "consumer" if row.kind == "consumer" else _protocol_type(case)
        info = {"protocol": row.protocol, "protocol_type": kind, "state": row.state}
        yield Families.GROUP, {**group, **info, "coordinator_id": coordinator}, int(row.state == "Stable")
    if row.members is not None:
        yield Families.MEMBERS, group, row.members
        yield Families.EMPTY, group, len(idle_members(case))
    yield from _of_members(case, group)
    offsets: defaultdict[str, int] = defaultdict(int)
    lags: defaultdict[str, int] = defaultdict(int)
    for each in partitions_of(case):
        topic = each.name.topic
        if each.offset is not None:
            offsets[topic] += each.offset
        if each.lag is not None:
            lags[topic] += each.lag
            place = {"topic_name": topic, "partition_id": each.name.partition}
            yield Families.LAG, {**group, **place}, each.lag
    for family, sums in ((Families.OFFSETS, offsets), (Families.LAGS, lags)):
        yield from ((family, {**group, "topic_name": topic}, total) for topic, total in sums.items())


def _protocol_type(case: Case) -> str:
    return case.state.protocol_type if case.state is not None else ""


def _of_members(case: Case, group: Mapping[str, object]) -> Iterator[Row]:
    members: defaultdict[str, int] = defaultdict(int)
    partitions: defaultdict[str, int] = defaultdict(int)
    for member in case.members or ():
        topics = [name.topic for name in member.assigned or ()]
        for topic in set(topics):
            members[topic] += 1
            partitions[topic] += topics.count(topic)
    for family, sums in ((Families.TOPIC_MEMBERS, members), (Families.ASSIGNED, partitions)):
        yield from ((family, {**group, "topic_name": topic}, total) for topic, total in sums.items())
