"""Names of kafka-lag-exporter, and of its heirs."""

from collections import defaultdict
from collections.abc import Iterator

from kelpie.web.families import NO_LABELS, Each, Family, Labels, Places, Row, known, labels
from kelpie.web.numbers import ClusterNumbers, GroupNumbers


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


class LagExporter:
    def __init__(self, cluster: str) -> None:
        self._cluster = labels(cluster_name=cluster)
        self._places = Places()
        self._topics = Each("topic")

    def of_cluster(self, numbers: ClusterNumbers) -> Iterator[Row]:
        yield Families.POLL, self._cluster, NO_LABELS, numbers.took_ms
        for name, end in numbers.ends.items():
            yield from known(Families.END, self._cluster, self._places[name], end.latest)
            yield from known(Families.BEGINNING, self._cluster, self._places[name], end.earliest)

    def of_group(self, group: GroupNumbers, _: ClusterNumbers, *, by_partition: bool) -> Iterator[Row]:
        here = self._cluster.also(labels(group=group.row.group))
        sums: defaultdict[str, int] = defaultdict(int)
        most, ages = [], []
        holders: dict[str, Labels] = {}
        for row in group.partitions:
            lag = row.read_uncommitted_lag
            age_ms = 0 if lag == 0 else row.lag_ms
            if lag is not None:
                most.append(lag)
                sums[row.name.topic] += lag
            if age_ms is not None:
                ages.append(age_ms)
            if by_partition:
                of_member = holders.get(row.member_id)
                if of_member is None:
                    about = labels(member_host=row.host, consumer_id=row.member_id, client_id=row.client_id)
                    of_member = holders[row.member_id] = here.also(about)
                place = self._places[row.name]
                if row.offset is not None:
                    yield Families.OFFSET, of_member, place, row.offset
                if lag is not None:
                    yield Families.LAG, of_member, place, lag
                if age_ms is not None:
                    yield Families.LAG_S, of_member, place, age_ms / 1000
        if most:
            yield Families.MOST, here, NO_LABELS, max(most)
            yield Families.SUM, here, NO_LABELS, sum(most)
        if ages:
            yield Families.MOST_S, here, NO_LABELS, max(ages) / 1000
        for topic, total in sums.items():
            yield Families.TOPIC_SUM, here, self._topics[topic], total
