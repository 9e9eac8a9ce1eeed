"""Rows of coordinator_timeline and coordinator_outage."""

from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, BrokerView, PartitionView
from kelpie.pipeline.diagnosis.coordinators import outages, timeline
from kelpie.pipeline.tables.moments import moment


def test_partitions_that_nobody_spoke_of_have_no_timeline() -> None:
    """Half an archive names the topic's size and little else."""
    view = ClusterView(now=1, offsets_partitions=50)
    assert timeline(view, "c") == []
    assert outages(view, "c", {}) == []


def test_a_period_without_a_leader_is_a_row_of_both() -> None:
    """The timeline has a row without a broker; the outage names the groups that it hit."""
    home = TopicPartition(OFFSETS_TOPIC, 0)
    views = [
        PartitionView(OFFSETS_TOPIC, 0, leader, (1, 2), (), at=at, source=f"survey {at}")
        for at, leader in ((100, 1), (200, -1), (300, 2))
    ]
    view = ClusterView(
        now=1000,
        brokers={node: BrokerView(node, alive=True) for node in (1, 2)},
        offsets_partitions=1,
        earlier_views={home: tuple(views[:2])},
        views={home: (views[2],)},
    )
    assert [(row["node"], row["began"], row["ended"], row["evidence"]) for row in timeline(view, "c")] == [
        (1, moment(100), moment(200), "survey 100"),
        (None, moment(200), moment(300), "survey 200"),
        (2, moment(300), None, "survey 300"),
    ]
    assert outages(view, "c", {0: ["b", "a"]}) == [
        {
            "cluster": "c",
            "offsets_partition": 0,
            "began": moment(200),
            "ended": moment(300),
            "brokers": [1, 2],
            "groups": ["a", "b"],
            "evidence": "survey 200 saw no leader",
        }
    ]
