"""Names and labels of other exporters, as they publish them, and what stands behind each."""

import re
from pathlib import Path

import pytest

from kelpie.cli.metrics_options import EXPORTERS as NAMED
from kelpie.client.admin.log_dirs import LogDirSizes
from kelpie.examination import Examination
from kelpie.observations import Committed, GroupState, Listing, LogEnds, Member, Observations
from kelpie.web.exposition import EXPORTERS
from kelpie.web.families import COUNTER
from kelpie.web.meter import Meter
from tests.doctor.building import NOW, a_broker, a_committed, a_view, an_offsets_topic
from tests.web.published_metrics import COUNTERS, PUBLISHED
from tests.web.scraping import KINDS, Samples, scraped
from tests.web.watching import pages

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


def _exported(exporter: str) -> Samples:
    meter = Meter()
    meter.log_dirs = LogDirSizes({1: 100, 2: 40}, {"orders": 140})
    evidence = _a_group_that_reads()
    with pages(Examination(evidence=evidence), exporters=[exporter], meter=meter) as browser:
        return scraped(browser)


@pytest.mark.parametrize("exporter", PUBLISHED)
def test_published_names_and_labels_are_there(exporter: str) -> None:
    exported = _exported(exporter)
    assert {name: set(samples[0][0]) for name, samples in exported.items()} == {
        name: set(labels.split()) for name, labels in PUBLISHED[exporter].items()
    }
    assert {name for name in exported if KINDS[name] == COUNTER} == COUNTERS & exported.keys()


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
        ("kminion", "kminion_kafka_broker_log_dir_size_total_bytes", [100, 40]),
        ("kminion", "kminion_kafka_topic_log_dir_size_total_bytes", [140]),
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
    with pages(Examination(evidence=_a_group_that_reads()), exporters=list(EXPORTERS)) as browser:
        text = browser.get("/metrics").text
    names = re.findall(r"^# TYPE (\S+)", text, re.M)
    assert len(names) == len(set(names))
    published = {name for names in PUBLISHED.values() for name in names if "log_dir_size" not in name}
    assert published <= set(names)


def test_the_command_line_and_the_documentation_name_all_exporters() -> None:
    assert tuple(EXPORTERS) == NAMED
    text = DOCS.read_text()
    assert all(f"`{name}`" in text for name in EXPORTERS)
