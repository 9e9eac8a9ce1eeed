"""Burrow's names, and its statuses as they follow from the doctor's findings.

A partition is STOP, STALL or REWIND where the doctor finds that it has stopped, is stalled or was set back. A
group is ERR if one of its partitions is, or if it has another critical finding; WARN with a warning. So a
group without a coordinator is ERR here: Burrow itself goes on with OK.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum

from kelpie.doctor.finding import Finding, Severity
from kelpie.doctor.overview import PartitionOverview, partitions_of
from kelpie.model.names import TopicPartition
from kelpie.web.families import Family, Labels, Row
from kelpie.web.snapshot import Snapshot


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


def rows(look: Snapshot, cluster_name: str) -> Iterator[Row]:
    cluster = {"cluster": cluster_name}
    for name, ends in sorted(look.diagnosis.cluster.ends.items()):
        if ends[-1].latest >= 0:
            yield Families.END, {**cluster, "topic": name.topic, "partition": name.partition}, ends[-1].latest
    lags = {row.group: row.lag for row in look.groups}
    for case in look.cases():
        group = {**cluster, "consumer_group": case.group}
        findings = present(look.findings_of(case.group))
        yield Families.STATUS, group, status_of_group(findings)
        lag = lags[case.group]
        if lag is not None:
            yield Families.LAG, group, lag
        for row in partitions_of(case):
            yield from _of_partition(group, row, status_of_partition(findings, row.name))


def _of_partition(group: Labels, row: PartitionOverview, status: Status) -> Iterator[Row]:
    labels = {**group, "topic": row.name.topic, "partition": row.name.partition, "owner": row.host}
    yield Families.PARTITION_STATUS, labels, status
    if row.offset is not None:
        yield Families.OFFSET, labels, row.offset
    if row.lag is not None:
        yield Families.PARTITION_LAG, labels, row.lag
