"""Topic ids in cluster_snapshot: the doctor of the tables knows them as the live one does."""

from kelpie.cluster import build_cluster
from kelpie.cluster.topics import Existence
from kelpie.observations import Observations, TopicView
from kelpie.pipeline.sources.snapshots.outputs import EARLIER, observed, rows
from tests.doctor.building import MINUTE, NOW, an_end


def _table(seen: Observations, snapshot: str, mark: str = "") -> list[dict[str, object]]:
    made = rows(seen, {}, cluster="c", snapshot=snapshot)
    return [{**row, "kind": f"{mark}{row['kind']}"} for row in made]


def test_an_earlier_survey_tells_the_old_id_and_only_the_newest_says_what_is_gone() -> None:
    """What the earlier survey saw of both topics is not used any more."""
    then = NOW - 10 * MINUTE
    before = Observations(
        topics=[TopicView("orders", "A", told_by=1, at=then), TopicView("payments", "B", told_by=1, at=then)],
        ends=[an_end(900, at=then), an_end(900, topic="payments", at=then)],
    )
    newest = Observations(
        topics=[
            TopicView("orders", "C", told_by=1, at=NOW),
            TopicView("payments", error=3, told_by=1, at=NOW),
        ],
        ends=[an_end(30)],
    )
    read = observed([*_table(before, "1", EARLIER), *_table(newest, "2")])
    assert read.topics == [*before.topics, *newest.topics]
    cluster = build_cluster(read)
    assert cluster.known_topics.existence("payments") is Existence.GONE
    assert cluster.known_topics.recreations["orders"].until == then
    assert [end.latest for rows_of_name in cluster.ends.values() for end in rows_of_name] == [30]


def test_a_table_from_before_has_no_topics() -> None:
    """Older snapshots have no such rows: whether a topic is there follows from the views."""
    cluster = build_cluster(observed(_table(Observations(ends=[an_end(30)]), "1")))
    assert cluster.known_topics.existence("orders") is Existence.UNKNOWN
    assert not cluster.is_gone("orders")
