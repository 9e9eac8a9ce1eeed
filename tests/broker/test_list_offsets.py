"""ListOffsets with every special timestamp, OffsetForLeaderEpoch, and DeleteRecords."""

import pytest

from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.api.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kelpie.wire.api.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kelpie.wire.api.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker.clients import LEADER, batch, list_offset, part, produced, read
from tests.broker.driver import PARKED, PERSONAS, START, Cluster, Sent
from tests.broker.test_fetch import Producer

LATEST, EARLIEST, MAX, EARLIEST_LOCAL, TIERED, PENDING = -1, -2, -3, -4, -5, -6


def filled(persona: str = "4.3") -> tuple[Cluster, TopicPartition]:
    """Three records, the one in the middle the youngest."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    for stamp in (START, START + 20, START + 10):
        produced(cluster, partition, records=batch(b"x", timestamp=stamp))
    return cluster, partition


@pytest.mark.parametrize("persona", PERSONAS[1:])
@pytest.mark.parametrize("version", [1, 4, 6])
def test_times_that_every_version_knows(persona: str, version: int) -> None:
    """Latest and earliest have no timestamp; a time finds the first record that is not older."""
    cluster, partition = filled(persona)
    expected = {
        LATEST: (-1, 3),
        EARLIEST: (-1, 0),
        START + 1: (START + 20, 1),
        START + 20: (START + 20, 1),
        START + 21: (-1, -1),
        0: (START, 0),
    }
    for timestamp, found in expected.items():
        answer = list_offset(cluster, partition, timestamp, version=version)
        assert (answer.error_code, answer.timestamp, answer.offset) == (0, *found)
        known = version >= 4 and answer.offset >= 0
        assert answer.leader_epoch == (0 if known else -1)


@pytest.mark.parametrize(
    ("timestamp", "since", "found"),
    [
        (MAX, 7, (START + 20, 1)),
        (EARLIEST_LOCAL, 8, (-1, 0)),
        (TIERED, 9, (-1, -1)),
        (PENDING, 11, (-1, -1)),
    ],
)
def test_times_that_came_later(timestamp: int, since: int, found: tuple[int, int]) -> None:
    """An older version does not know them: UNSUPPORTED_VERSION. Nothing is in tiered storage: −1."""
    cluster, partition = filled()
    for version in range(1, 12):
        answer = list_offset(cluster, partition, timestamp, version=version)
        if version < since:
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        else:
            assert (answer.error_code, answer.timestamp, answer.offset) == (0, *found)


def test_time_that_nobody_knows() -> None:
    """−7 is no time in any version."""
    cluster, partition = filled()
    assert list_offset(cluster, partition, -7, version=11).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", [1, 6])
@pytest.mark.parametrize("timestamp", [MAX, EARLIEST_LOCAL, TIERED, PENDING, -7])
def test_before_3_0_they_are_times_like_any_other(timestamp: int, version: int) -> None:
    """No record is older than that, so the first one is found; in version 0, no segment is so old."""
    cluster, partition = filled("2.8")
    answer = list_offset(cluster, partition, timestamp, version=version)
    assert (answer.error_code, answer.timestamp, answer.offset) == (0, START, 0)
    for persona in ("0.9", "2.8"):
        cluster, partition = filled(persona)
        answer = list_offset(cluster, partition, timestamp, version=0)
        assert (answer.error_code, answer.old_style_offsets) == (0, [])


def test_version_0_finds_nothing_old_in_a_log_without_records() -> None:
    """The file is as old as the partition, not older than everything."""
    cluster = Cluster(persona="2.8")
    partition = cluster.create()
    assert list_offset(cluster, partition, START - 1, version=0).old_style_offsets == []
    assert list_offset(cluster, partition, LATEST, version=0).old_style_offsets == [0]


@pytest.mark.parametrize("persona", ["0.9", "2.8", "3.9"])
def test_version_0_lists_the_beginnings_of_segments(persona: str) -> None:
    """Newest first, the end in front of them, and no more than asked for."""
    cluster = Cluster(persona=persona)
    partition = cluster.create(config={"segment.bytes": "150"})
    for _ in range(3):
        produced(cluster, partition, b"x" * 60)
        cluster.advance(1000)
    assert list_offset(cluster, partition, LATEST, version=0).old_style_offsets == [3]
    assert list_offset(cluster, partition, LATEST, version=0, most=9).old_style_offsets == [3, 2, 1, 0]
    assert list_offset(cluster, partition, EARLIEST, version=0, most=9).old_style_offsets == [0]
    older = list_offset(cluster, partition, START + 1500, version=0, most=9)
    assert older.old_style_offsets == [1, 0]
    assert list_offset(cluster, partition, START - 1, version=0).old_style_offsets == []


def test_version_0_does_not_tell_what_is_not_committed() -> None:
    """The high watermark stands for the end."""
    cluster = Cluster(persona="2.8")
    partition = cluster.create()
    produced(cluster, partition, b"a")
    cluster.fabric.lag(3)
    produced(cluster, partition, b"b", acks=LEADER)
    assert list_offset(cluster, partition, LATEST, version=0, most=9).old_style_offsets == [1, 0]


def test_latest_is_what_the_asker_may_read() -> None:
    """The high watermark, or the last stable offset for read_committed."""
    cluster = Cluster()
    partition = cluster.create()
    produced(cluster, partition, b"a")
    producer = Producer(cluster, partition)
    producer.send(b"b")
    assert list_offset(cluster, partition, LATEST).offset == 2
    assert list_offset(cluster, partition, LATEST, isolation_level=1).offset == 1
    producer.end(committed=True)
    assert list_offset(cluster, partition, LATEST, isolation_level=1).offset == 3


@pytest.mark.parametrize(
    ("version", "code"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
def test_new_leader_that_does_not_know_the_end_yet(version: int, code: ErrorCode) -> None:
    """KIP-207: until followers confirm, the end that the former leader told could seem to go back."""
    cluster = Cluster()
    partition = cluster.create()
    cluster.fabric.lag(3)
    produced(cluster, partition, b"a", acks=LEADER)
    cluster.fabric.stop(1, cluster.now)
    assert cluster.leader(partition) == 2
    assert list_offset(cluster, partition, LATEST, version=version).error_code == code
    assert list_offset(cluster, partition, START, version=version).error_code == code
    assert list_offset(cluster, partition, EARLIEST, version=version).offset == 0
    cluster.fabric.catch_up(3, None, cluster.now)
    assert list_offset(cluster, partition, LATEST, version=version).offset == 1


def test_list_offsets_refuses_as_fetch_does() -> None:
    """Wrong broker, unknown partition, epochs, and a partition that is named twice."""
    cluster, partition = filled()
    assert list_offset(cluster, partition, LATEST, node=2).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    missing = TopicPartition("none", 0)
    assert list_offset(cluster, missing, LATEST, node=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(cluster, partition, LATEST, epoch=1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    cluster.lose(1)
    assert list_offset(cluster, partition, LATEST, epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
    twice = [ListOffsetsPartition(partition_index=0, timestamp=time) for time in (LATEST, EARLIEST)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="orders", partitions=twice)])
    answer = cluster.ask(2, request, 6)
    assert [it.error_code for it in answer.topics[0].partitions] == [ErrorCode.INVALID_REQUEST] * 2


def epoch_end(
    cluster: Cluster, partition: TopicPartition, epoch: int, *, current: int = -1
) -> tuple[int, int, int]:
    asked = OffsetForLeaderPartition(
        partition=partition.partition, leader_epoch=epoch, current_leader_epoch=current
    )
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=partition.topic, partitions=[asked])]
    )
    found = cluster.ask(cluster.leader(partition), request, 3).topics[0].partitions[0]
    return found.error_code, found.leader_epoch, found.end_offset


def test_where_epochs_ended() -> None:
    """By this a consumer notices that its records are gone: truncation after an unclean election."""
    cluster, partition = filled()
    cluster.lose(1)
    cluster.lose(2)
    produced(cluster, partition, b"y")
    assert epoch_end(cluster, partition, 0) == (0, 0, 3)
    assert epoch_end(cluster, partition, 2) == (0, 2, 4)
    assert epoch_end(cluster, partition, 1) == (0, 0, 3), "epoch 1 wrote nothing"
    assert epoch_end(cluster, partition, 9) == (0, -1, -1)
    assert epoch_end(cluster, partition, 0, current=1) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert epoch_end(cluster, partition, 0, current=3) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)


def delete(cluster: Cluster, partition: TopicPartition, offset: int, *, node: int | None = None) -> Sent:
    asked = DeleteRecordsPartition(partition_index=partition.partition, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=partition.topic, partitions=[asked])], timeout_ms=5000
    )
    return cluster.send(cluster.leader(partition) if node is None else node, request, 2)


def deleted(cluster: Cluster, partition: TopicPartition, offset: int, **more: int) -> tuple[int, int]:
    found = part(delete(cluster, partition, offset, **more).answer)
    return found.error_code, found.low_watermark


def test_records_are_deleted_on_all_replicas() -> None:
    """The log begins later, everywhere, also in the middle of a batch; −1 deletes all that is committed."""
    cluster = Cluster()
    partition = cluster.create()
    produced(cluster, partition, b"a", b"b", b"c")
    assert deleted(cluster, partition, 1) == (0, 1)
    assert [cluster.replica(node, partition).log.start_offset for node in (1, 2, 3)] == [1, 1, 1]
    assert deleted(cluster, partition, 0) == (0, 1)
    assert list_offset(cluster, partition, EARLIEST).offset == 1
    assert deleted(cluster, partition, -1) == (0, 3)
    assert list_offset(cluster, partition, EARLIEST).offset == 3
    assert read(cluster, partition, 3) == []


def test_deletion_waits_for_living_followers() -> None:
    """Else the records could come back with another leader. Dead ones are not waited for."""
    cluster = Cluster()
    partition = cluster.create()
    produced(cluster, partition, b"a", b"b")
    cluster.fabric.lag(3)
    sent = delete(cluster, partition, 1)
    assert sent.waits
    cluster.fabric.catch_up(3, None, cluster.now)
    assert part(sent.answer).low_watermark == 1
    cluster.fabric.lag(3)
    late = delete(cluster, partition, 2)
    cluster.advance(5000)
    assert part(late.answer).error_code == ErrorCode.REQUEST_TIMED_OUT
    cluster.fabric.stop(3, cluster.now)
    assert deleted(cluster, partition, 2) == (0, 2)


def test_deletion_that_is_refused() -> None:
    """Beyond the high watermark, at the wrong broker, of compacted and of internal topics."""
    cluster = Cluster()
    partition = cluster.create()
    produced(cluster, partition, b"a")
    assert deleted(cluster, partition, 2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert deleted(cluster, partition, -2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert deleted(cluster, partition, 1, node=2) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    compacted = cluster.create("compacted", config={"cleanup.policy": "compact"})
    assert deleted(cluster, compacted, 0) == (ErrorCode.POLICY_VIOLATION, -1)
    internal = cluster.create("__consumer_offsets")
    assert deleted(cluster, internal, 0) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    assert cluster.ask(1, DeleteRecordsRequest(topics=[], timeout_ms=0), 2) is not PARKED


def test_deletion_ends_when_the_lead_moves() -> None:
    """The new leader knows nothing of it; the client asks again there."""
    cluster = Cluster()
    partition = cluster.create()
    produced(cluster, partition, b"a")
    cluster.fabric.lag(3)
    sent = delete(cluster, partition, 1)
    cluster.fabric.stop(1, cluster.now)
    assert part(sent.answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
