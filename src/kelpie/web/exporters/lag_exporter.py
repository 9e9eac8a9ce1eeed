"""Names of kafka-lag-exporter, and of its heirs."""

from collections import defaultdict
from collections.abc import Iterator

from kelpie.doctor.case import Case
from kelpie.doctor.overview import partitions_of
from kelpie.web.families import Family, Row
from kelpie.web.snapshot import Snapshot


class Families:
    OFFSET = Family("kafka_consumergroup_group_offset", "The committed offset.")
    LAG = Family("kafka_consumergroup_group_lag", "Records of the partition left to read.")
    LAG_S = Family("kafka_consumergroup_group_lag_seconds", "Age of the oldest record left to read.")
    MOST = Family("kafka_consumergroup_group_max_lag", "The largest lag among its partitions.")
    MOST_S = Family("kafka_consumergroup_group_max_lag_seconds", "The largest lag in time.")
    SUM = Family("kafka_consumergroup_group_sum_lag", "Records left to read, as far as known.")
    TOPIC_SUM = Family("kafka_consumergroup_group_topic_sum_lag", "Records of the topic left to read.")
    END = Family("kafka_partition_latest_offset", "Where the log ends.")
    BEGINNING = Family("kafka_partition_earliest_offset", "Where the log begins.")
    POLL = Family("kafka_consumergroup_poll_time_ms", "Milliseconds that the last look took.")


def rows(look: Snapshot, cluster_name: str) -> Iterator[Row]:
    cluster = {"cluster_name": cluster_name}
    yield Families.POLL, cluster, look.took_ms
    for name, ends in sorted(look.diagnosis.cluster.ends.items()):
        labels = {**cluster, "topic": name.topic, "partition": name.partition}
        if ends[-1].latest >= 0:
            yield Families.END, labels, ends[-1].latest
        if ends[-1].earliest >= 0:
            yield Families.BEGINNING, labels, ends[-1].earliest
    for case in look.cases():
        yield from _of_group(case, {**cluster, "group": case.group})


def _of_group(case: Case, group: dict[str, object]) -> Iterator[Row]:
    sums: defaultdict[str, int] = defaultdict(int)
    most, ages = [], []
    for row in partitions_of(case):
        place = {"topic": row.name.topic, "partition": row.name.partition}
        member = {"member_host": row.host, "consumer_id": row.member_id, "client_id": row.client_id}
        labels = {**group, **place, **member}
        if row.offset is not None:
            yield Families.OFFSET, labels, row.offset
        if row.lag is not None:
            most.append(row.lag)
            sums[row.name.topic] += row.lag
            yield Families.LAG, labels, row.lag
        age_ms = 0 if row.lag == 0 else row.lag_ms
        if age_ms is not None:
            ages.append(age_ms)
            yield Families.LAG_S, labels, age_ms / 1000
    if most:
        yield Families.MOST, group, max(most)
        yield Families.SUM, group, sum(most)
    if ages:
        yield Families.MOST_S, group, max(ages) / 1000
    for topic, total in sums.items():
        yield Families.TOPIC_SUM, {**group, "topic": topic}, total
