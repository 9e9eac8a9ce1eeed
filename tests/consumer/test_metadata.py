"""What a consumer knows of topics and leaders, when it asks anew, and what it believes."""

from typing import Any

import pytest

from kelpie.consumer.effects import ProblemKind
from kelpie.errors import ErrorCode
from kelpie.questions.fetch import AskRecords
from kelpie.questions.metadata import AskMetadata, ClusterFacts, PartitionFacts, TopicFacts
from tests.consumer.positions.test_fetch_positions import by_hand
from tests.consumer.stand import Stand
from tests.consumer.world import GONE, T0, World

_E = ErrorCode
_BROKERS = {1: ("one", 9092), 2: ("two", 9092)}


def _facts(
    error: int = 0, *, epoch: int = 5, leader: int | None = 1, topic_id: bytes = b"1" * 16
) -> ClusterFacts:
    partitions = {} if error else {0: PartitionFacts(0, leader, epoch, (1, 2), (1, 2))}
    return ClusterFacts(_BROKERS, {"t": TopicFacts(error, topic_id, partitions)})


def _alone(**config: Any) -> Stand:
    return by_hand(partitions=(T0,), group_id=None, **config)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (_E.TOPIC_AUTHORIZATION_FAILED, ProblemKind.NOT_AUTHORISED),
        (_E.INVALID_TOPIC_EXCEPTION, ProblemKind.REFUSED),
    ],
)
def test_topic_that_may_not_be_read_is_raised(error: ErrorCode, kind: ProblemKind) -> None:
    """No waiting helps; and it is named."""
    stand = _alone()
    stand.poll()
    stand.give(AskMetadata, _facts(error))
    problem = stand.problem()
    assert (problem.kind, problem.error) == (kind, error)
    assert "Topic t" in problem.text


@pytest.mark.parametrize(
    "error", [_E.UNKNOWN_TOPIC_OR_PARTITION, _E.LEADER_NOT_AVAILABLE, _E.UNKNOWN_SERVER_ERROR]
)
def test_topic_that_is_missing_is_asked_for_again(error: ErrorCode) -> None:
    """It may be about to be created; less and less often, and it begins as soon as it is there."""
    stand = _alone(retry_backoff_ms=100)
    stand.poll()
    for wait_ms in (100, 200, 400, 800, 1_000):
        stand.give(AskMetadata, _facts(error))
        assert stand.last_step.failed
        stand.wait(wait_ms - 1)
        assert not stand.has_asked(AskMetadata)
        stand.wait(1)
    stand.run(AskRecords)
    assert stand.has_asked(AskRecords)


def test_answer_without_anything_is_asked_again() -> None:
    """A broker that is not ready says so for the whole answer, since version 13."""
    stand = _alone()
    stand.poll()
    stand.give(AskMetadata, ClusterFacts({}, {}, _E.REBOOTSTRAP_REQUIRED))
    stand.wait(100)
    assert stand.has_asked(AskMetadata)


def test_broker_that_does_not_answer_is_passed_over() -> None:
    """Any other will do."""
    stand = by_hand(group_id=None)
    stand.reach(AskRecords)
    stand.consumer.metadata.outdated()
    stand.wait(100)
    first = stand.asked(AskMetadata).node
    stand.give(AskRecords, GONE)
    stand.give(AskMetadata, GONE)
    stand.wait(100)
    assert stand.asked(AskMetadata).node != first


def test_knowledge_is_renewed_when_it_is_old() -> None:
    """Partitions may have been added, without anybody saying so."""
    stand = _alone(metadata_max_age_ms=60_000)
    stand.reach(AskRecords)
    stand.wait(59_999)
    assert not stand.has_asked(AskMetadata)
    stand.wait(1)
    assert stand.has_asked(AskMetadata)


def test_topic_created_anew_begins_with_new_epochs() -> None:
    """Its id is another, so a lower epoch is no older one."""
    stand = _alone()
    stand.poll()
    stand.give(AskMetadata, _facts(epoch=9, leader=1))
    stand.consumer.metadata.outdated()
    stand.wait(100)
    stand.give(AskMetadata, _facts(epoch=0, leader=2, topic_id=b"2" * 16))
    assert stand.consumer.metadata.leader(T0).node_id == 2


def test_epoch_seen_elsewhere_makes_what_is_known_outdated() -> None:
    """A committed offset, say, may carry the epoch of a leader that metadata do not know yet."""
    stand = by_hand(World(epoch=5))
    stand.reach(AskRecords)
    stand.consumer.metadata.seen(T0, 4)
    stand.wait(1_000)
    assert not stand.has_asked(AskMetadata)
    stand.consumer.metadata.seen(T0, 6)
    stand.wait(1_000)
    assert stand.has_asked(AskMetadata)
