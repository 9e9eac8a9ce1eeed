"""Two clusters that say they have one id are kept apart by what they were seen to be."""

from pathlib import Path

import pytest

from kelpie.examination.memory import Memory, Recollection
from kelpie.observations import OFFSETS_TOPIC, Committed, Listing, Observations
from kelpie.observations.cluster import TopicView
from kelpie.observations.identity import saw_same_cluster
from kelpie.store import Store, known_as

NOW = 1_800_000_000_000
HERE, THERE = ("kafka-1:9092", "kafka-2:9092"), ("evil:9092",)


def survey(at: int, offset: int, **ids: str) -> Observations:
    """`ids` of topics; `offsets_topic` stands for the offsets topic."""
    names = {name.replace("offsets_topic", OFFSETS_TOPIC): topic_id for name, topic_id in ids.items()}
    return Observations(
        listings=[Listing(1, ("billing",), at=at)],
        committed=[Committed("billing", "orders", 0, offset, at=at)],
        topics=[TopicView(name, topic_id, told_by=1, at=at) for name, topic_id in names.items()],
    )


def look(store: Store, at: int, addresses: tuple[str, ...], rows: Observations) -> Memory:
    """As an examination does it: recall, survey, settle, remember."""
    name = store.identify("id", addresses)
    known = Memory(name, store.recall(name, at)) if name is not None else None
    memory = Recollection(store, "id", addresses, at, known).settled(rows)
    store.remember(memory.name, rows, at, addresses=addresses)
    return memory


def offsets(memory: Memory) -> set[int]:
    return {row.offset for row in memory.rows.committed}


def test_a_broker_that_claims_a_known_id_does_not_overwrite_what_is_remembered(tmp_path: Path) -> None:
    """Rehome would take the offsets of whoever said it was this cluster last."""
    store = Store(tmp_path)
    look(store, NOW, HERE, survey(NOW, 7, offsets_topic="A"))
    assert look(store, NOW + 1000, THERE, survey(NOW + 1000, 999_999, offsets_topic="E")).name == "id~2"
    (word,) = store.words
    assert "at evil:9092 says that its id is id, as the one at kafka-1:9092 and kafka-2:9092 did" in word
    again = look(store, NOW + 2000, HERE, survey(NOW + 2000, 8, offsets_topic="A"))
    assert (again.name, offsets(again)) == ("id", {7})
    assert len(store.words) == 1


def test_nor_one_that_advertises_the_addresses_of_the_other(tmp_path: Path) -> None:
    """An address is what a broker says it is, too. Ids of topics cannot be guessed."""
    store = Store(tmp_path)
    look(store, NOW, HERE, survey(NOW, 7, offsets_topic="A", orders="o"))
    both = (*THERE, *HERE)
    assert look(store, NOW + 1000, both, survey(NOW + 1000, 9, offsets_topic="E", orders="x")).name == "id~2"
    assert "Its topics have other ids" in store.words[0]
    again = look(store, NOW + 2000, HERE, survey(NOW + 2000, 8, offsets_topic="A", orders="o"))
    assert (again.name, offsets(again)) == ("id", {7})
    evil = look(store, NOW + 3000, both, survey(NOW + 3000, 9, offsets_topic="E", orders="x"))
    assert (evil.name, offsets(evil)) == ("id~2", {9})
    assert len(store.words) == 1


def test_nor_one_whose_release_seems_too_old_for_ids(tmp_path: Path) -> None:
    """A broker chooses which versions it speaks."""
    store = Store(tmp_path)
    look(store, NOW, HERE, survey(NOW, 7, offsets_topic="A"))
    assert look(store, NOW + 1000, HERE, survey(NOW + 1000, 9, offsets_topic="")).name == "id~2"


def test_the_same_cluster_at_another_listener_is_the_same(tmp_path: Path) -> None:
    """Seen from inside and from outside: no address in common, and the same topics."""
    store = Store(tmp_path)
    look(store, NOW, HERE, survey(NOW, 7, offsets_topic="A"))
    outside = ("lb.example.com:443",)
    memory = look(store, NOW + 1000, outside, survey(NOW + 1000, 8, offsets_topic="A"))
    assert (memory.name, offsets(memory), store.words) == ("id", {7}, [])
    assert store.identify("id", outside) == "id"


def test_a_topic_that_was_created_again_is_no_other_cluster(tmp_path: Path) -> None:
    """KLP314 tells of that, by the memory."""
    store = Store(tmp_path)
    look(store, NOW, HERE, survey(NOW, 7, offsets_topic="A", orders="o"))
    memory = look(store, NOW + 1000, HERE, survey(NOW + 1000, 0, offsets_topic="A", orders="new"))
    assert (memory.name, offsets(memory), store.words) == ("id", {7}, [])


def test_old_clusters_are_known_by_their_addresses(tmp_path: Path) -> None:
    """Before Kafka 2.8 topics have no ids. Another address alone makes another cluster, and that is told."""
    store = Store(tmp_path)
    look(store, NOW, HERE, survey(NOW, 7))
    same = look(store, NOW + 1000, ("kafka-2:9092", "kafka-3:9092"), survey(NOW + 1000, 8))
    assert (same.name, offsets(same)) == ("id", {7})
    other = look(store, NOW + 2000, THERE, survey(NOW + 2000, 9))
    assert (other.name, offsets(other)) == ("id~2", set())
    assert "None of its addresses is known" in store.words[0]
    once_more = look(store, NOW + 3000, THERE, survey(NOW + 3000, 9))
    assert (once_more.name, offsets(once_more), len(store.words)) == ("id~2", {9}, 1)


def test_a_cluster_that_was_never_seen_has_its_id_as_its_name(tmp_path: Path) -> None:
    """And nothing is told."""
    store = Store(tmp_path)
    memory = look(store, NOW, HERE, survey(NOW, 7, offsets_topic="A"))
    assert (memory.name, offsets(memory), store.words) == ("id", set(), [])
    assert known_as("id~2") != "id~2"


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ({"offsets_topic": "A"}, {"offsets_topic": "A"}, True),
        ({"offsets_topic": "A"}, {"offsets_topic": "B"}, False),
        ({"offsets_topic": "A", "orders": "o"}, {"offsets_topic": "B", "orders": "o"}, True),
        ({"orders": "o"}, {"orders": "p"}, None),
        ({"orders": "o"}, {"offsets_topic": "A"}, None),
        ({}, {"offsets_topic": "A"}, None),
        ({"offsets_topic": "A"}, {}, None),
    ],
)
def test_what_ids_of_topics_tell(before: dict[str, str], now: dict[str, str], same: bool | None) -> None:
    """Too little is not a contradiction."""
    assert saw_same_cluster(survey(NOW, 1, **before), survey(NOW + 1, 1, **now)) is same
