"""Burrow's names, and its statuses as they follow from the doctor's findings.

A partition is STOP, STALL or REWIND where the doctor finds that it has stopped, is stalled or was set back. A
group is ERR if one of its partitions is, or if it has another critical finding; WARN with a warning. So a
group without a coordinator is ERR here: Burrow itself goes on with OK.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum

from kelpie.doctor.finding import Finding, Severity
from kelpie.model.names import TopicPartition
from kelpie.web.families import NO_LABELS, Family, Labels, Places, Row, known, labels
from kelpie.web.numbers import ClusterNumbers, GroupNumbers


class Status(IntEnum):
    NOTFOUND = 0
    OK = 1
    WARN = 2
    ERR = 3
    STOP = 4
    STALL = 5
    REWIND = 6


class Families:
    LAG = Family("burrow_kafka_consumer_lag_total", "Records left to read, as far as known.")
    STATUS = Family(
        "burrow_kafka_consumer_status",
        f"Status of the group: {', '.join(f'{each.value} {each.name}' for each in Status)}.",
    )
    OFFSET = Family("burrow_kafka_consumer_current_offset", "The committed offset.")
    PARTITION_LAG = Family("burrow_kafka_consumer_partition_lag", "Records of the partition left to read.")
    PARTITION_STATUS = Family("burrow_kafka_topic_partition_status", "Status of the partition.")
    END = Family("burrow_kafka_topic_partition_offset", "Where the log ends.")


_OF_PARTITION = {"KLP310": Status.STOP, "KLP309": Status.STALL, "KLP308": Status.REWIND}


def status_of_partition(findings: Sequence[Finding], name: TopicPartition) -> Status:
    """A finding that names no partition is one of all."""
    for code, status in _OF_PARTITION.items():
        for finding in findings:
            if finding.code == code and (not finding.partitions or str(name) in finding.partitions):
                return status
    return Status.OK


def status_of_group(findings: Sequence[Finding]) -> Status:
    if any(each.severity is Severity.CRITICAL or each.code in _OF_PARTITION for each in findings):
        return Status.ERR
    return Status.WARN if any(each.severity is Severity.WARNING for each in findings) else Status.OK


def present(findings: Sequence[Finding]) -> list[Finding]:
    """Those that count: not over, not acknowledged, no mere notice."""
    return [
        each
        for each in findings
        if each.until is None and each.acknowledged is None and each.severity > Severity.NOTICE
    ]


class Burrow:
    def __init__(self, cluster: str) -> None:
        self._cluster = labels(cluster=cluster)
        self._places = Places()

    def of_cluster(self, numbers: ClusterNumbers) -> Iterator[Row]:
        for name, end in numbers.ends.items():
            yield from known(Families.END, self._cluster, self._places[name], end.latest)

    def of_group(self, group: GroupNumbers, numbers: ClusterNumbers, *, by_partition: bool) -> Iterator[Row]:
        here = self._cluster.also(labels(consumer_group=group.row.group))
        findings = present(numbers.of_group.get(group.row.group, ()))
        yield Families.STATUS, here, NO_LABELS, int(status_of_group(findings))
        yield from known(Families.LAG, here, NO_LABELS, group.row.lag)
        if not by_partition:
            return
        owners: dict[str, Labels] = {}
        for row in group.partitions:
            owned = owners.get(row.host)
            if owned is None:
                owned = owners[row.host] = here.also(labels(owner=row.host))
            place = self._places[row.name]
            yield Families.PARTITION_STATUS, owned, place, int(status_of_partition(findings, row.name))
            if row.offset is not None:
                yield Families.OFFSET, owned, place, row.offset
            if row.lag is not None:
                yield Families.PARTITION_LAG, owned, place, row.lag
