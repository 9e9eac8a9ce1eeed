"""Names and labels of other exporters, as they publish them, and what stands behind each."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kelpie.cli.serve import _EXPORTERS
from kelpie.examination import Examination
from kelpie.observations import Committed, GroupState, Listing, LogEnds, Member, Observations
from kelpie.web.metrics import EXPORTERS
from tests.doctor.building import NOW, a_broker, a_committed, a_view, an_offsets_topic
from tests.web.watching import pages

_PLACE = "consumergroup topic partition"
_TOPIC = "topic partition"
_OF_MEMBER = "cluster_name group topic partition member_host consumer_id client_id"
PUBLISHED = {
    "kafka-exporter": {
        "kafka_brokers": "",
        "kafka_broker_info": "address id",
        "kafka_topic_partitions": "topic",
        "kafka_topic_partition_current_offset": _TOPIC,
        "kafka_topic_partition_oldest_offset": _TOPIC,
        "kafka_topic_partition_in_sync_replica": _TOPIC,
        "kafka_topic_partition_leader": _TOPIC,
        "kafka_topic_partition_leader_is_preferred": _TOPIC,
        "kafka_topic_partition_replicas": _TOPIC,
        "kafka_topic_partition_under_replicated_partition": _TOPIC,
        "kafka_consumergroup_current_offset": _PLACE,
        "kafka_consumergroup_current_offset_sum": "consumergroup topic",
        "kafka_consumergroup_lag": _PLACE,
        "kafka_consumergroup_lag_sum": "consumergroup topic",
        "kafka_consumergroup_members": "consumergroup",
    },
    "kminion": {
        "kminion_exporter_up": "version",
        "kminion_exporter_offset_consumer_records_consumed_total": "",
        "kminion_kafka_broker_info": "address broker_id is_controller port rack_id",
        "kminion_kafka_cluster_info": "broker_count cluster_id cluster_version controller_id",
        "kminion_kafka_broker_log_dir_size_total_bytes": "address broker_id port rack_id",
        "kminion_kafka_topic_log_dir_size_total_bytes": "topic_name",
        "kminion_kafka_topic_info": "cleanup_policy partition_count replication_factor topic_name",
        "kminion_kafka_topic_partition_low_water_mark": "partition_id topic_name",
        "kminion_kafka_topic_low_water_mark_sum": "topic_name",
        "kminion_kafka_topic_partition_high_water_mark": "partition_id topic_name",
        "kminion_kafka_topic_high_water_mark_sum": "topic_name",
        "kminion_kafka_consumer_group_info": "coordinator_id group_id protocol protocol_type state",
        "kminion_kafka_consumer_group_members": "group_id",
        "kminion_kafka_consumer_group_empty_members": "group_id",
        "kminion_kafka_consumer_group_topic_members": "group_id topic_name",
        "kminion_kafka_consumer_group_topic_assigned_partitions": "group_id topic_name",
        "kminion_kafka_consumer_group_topic_offset_sum": "group_id topic_name",
        "kminion_kafka_consumer_group_topic_partition_lag": "group_id partition_id topic_name",
        "kminion_kafka_consumer_group_topic_lag": "group_id topic_name",
        "kminion_kafka_consumer_group_offset_commits_total": "group_id",
    },
    "lag-exporter": {
        "kafka_consumergroup_group_offset": _OF_MEMBER,
        "kafka_consumergroup_group_lag": _OF_MEMBER,
        "kafka_consumergroup_group_lag_seconds": _OF_MEMBER,
        "kafka_consumergroup_group_max_lag": "cluster_name group",
        "kafka_consumergroup_group_max_lag_seconds": "cluster_name group",
        "kafka_consumergroup_group_sum_lag": "cluster_name group",
        "kafka_consumergroup_group_topic_sum_lag": "cluster_name group topic",
        "kafka_partition_latest_offset": "cluster_name topic partition",
        "kafka_partition_earliest_offset": "cluster_name topic partition",
        "kafka_consumergroup_poll_time_ms": "cluster_name",
    },
    "burrow": {
        "burrow_kafka_consumer_lag_total": "cluster consumer_group",
        "burrow_kafka_consumer_status": "cluster consumer_group",
        "burrow_kafka_consumer_current_offset": "cluster consumer_group topic partition owner",
        "burrow_kafka_consumer_partition_lag": "cluster consumer_group topic partition owner",
        "burrow_kafka_topic_partition_status": "cluster consumer_group topic partition owner",
        "burrow_kafka_topic_partition_offset": "cluster topic partition",
    },
}
NOT_YET = {
    "kminion_exporter_offset_consumer_records_consumed_total",
    "kminion_kafka_cluster_info",
    "kminion_kafka_broker_log_dir_size_total_bytes",
    "kminion_kafka_topic_log_dir_size_total_bytes",
    "kminion_kafka_consumer_group_offset_commits_total",
}
"""docs/metrics.md says why."""
DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


def _a_group_that_reads() -> Observations:
    """Of two partitions it has read one to the end, and of the other all but 7 records."""
    names = [a_committed(0, partition=number).name for number in (0, 1)]
    members = (Member("m-1", "c-1", "/10.0.0.1", assigned=tuple(names)), Member("m-2", "c-2", assigned=()))
    state = GroupState("billing", "Stable", protocol="range", members=members, at=NOW, source="broker 1")
    return Observations(
        brokers=[a_broker(node) for node in (1, 2, 3)],
        partitions=[*an_offsets_topic(), *(a_view(number, 1, topic="orders") for number in (0, 1))],
        listings=[Listing(1, ("billing",), at=NOW, source="broker 1")],
        states=[state],
        committed=[Committed("billing", "orders", n, 5 + n, at=NOW, source="broker 1") for n in (0, 1)],
        ends=[LogEnds("orders", 0, 2, 12, at=NOW), LogEnds("orders", 1, 1, 6, at=NOW)],
    )


def _exported(exporter: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    with pages(Examination(evidence=_a_group_that_reads()), exporters=[exporter]) as browser:
        text = browser.get("/metrics").text
    return {
        family.name: [(dict(each.labels), each.value) for each in family.samples]
        for family in text_string_to_metric_families(text)
    }


@pytest.mark.parametrize("exporter", PUBLISHED)
def test_published_names_and_labels_are_there(exporter: str) -> None:
    exported = _exported(exporter)
    expected = {name: labels for name, labels in PUBLISHED[exporter].items() if name not in NOT_YET}
    assert {name: set(samples[0][0]) for name, samples in exported.items()} == {
        name: set(labels.split()) for name, labels in expected.items()
    }


@pytest.mark.parametrize(
    ("exporter", "name", "values"),
    [
        ("kafka-exporter", "kafka_consumergroup_lag", [7, 0]),
        ("kafka-exporter", "kafka_consumergroup_lag_sum", [7]),
        ("kafka-exporter", "kafka_consumergroup_current_offset_sum", [11]),
        ("kafka-exporter", "kafka_consumergroup_members", [2]),
        ("kafka-exporter", "kafka_brokers", [3]),
        ("kafka-exporter", "kafka_topic_partitions", [50, 2]),
        ("kafka-exporter", "kafka_topic_partition_oldest_offset", [2, 1]),
        ("kminion", "kminion_kafka_consumer_group_info", [1]),
        ("kminion", "kminion_kafka_consumer_group_empty_members", [1]),
        ("kminion", "kminion_kafka_consumer_group_topic_members", [1]),
        ("kminion", "kminion_kafka_consumer_group_topic_assigned_partitions", [2]),
        ("kminion", "kminion_kafka_topic_high_water_mark_sum", [18]),
        ("kminion", "kminion_kafka_consumer_group_topic_lag", [7]),
        ("lag-exporter", "kafka_consumergroup_group_max_lag", [7]),
        ("lag-exporter", "kafka_consumergroup_group_sum_lag", [7]),
        ("lag-exporter", "kafka_partition_latest_offset", [12, 6]),
        ("burrow", "burrow_kafka_consumer_lag_total", [7]),
        ("burrow", "burrow_kafka_consumer_status", [1]),
        ("burrow", "burrow_kafka_topic_partition_status", [1, 1]),
    ],
)
def test_numbers_are_those_of_the_group(exporter: str, name: str, values: list[float]) -> None:
    assert [value for _, value in _exported(exporter)[name]] == values


def test_several_exporters_at_once_do_not_mix() -> None:
    with pages(Examination(evidence=_a_group_that_reads()), exporters=EXPORTERS) as browser:
        text = browser.get("/metrics").text
    names = re.findall(r"^# TYPE (\S+)", text, re.M)
    assert len(names) == len(set(names))
    published = {name for names in PUBLISHED.values() for name in names} - NOT_YET
    assert published <= set(names)


def test_the_command_line_and_the_documentation_name_all_exporters() -> None:
    assert _EXPORTERS == EXPORTERS
    text = DOCS.read_text()
    assert all(f"`{name}`" in text for name in EXPORTERS)
    assert all(f"`{name}`" in text for name in NOT_YET)
