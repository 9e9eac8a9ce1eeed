"""Records about groups: classic ones, those of KIP-848, and those that only newer Kafkas know."""

import struct
from typing import Any

import pytest

from kelpie.pipeline.decoding.group_records import group_metadata
from kelpie.wire import offsets_topic
from kelpie.wire.offsets_topic import consumer_group as kip848
from kelpie.wire.records import Record, write_batch
from kelpie.wire.structs import TopicIdPartitions
from tests.evidence import unpacked
from tests.pipeline.decoding.whole_segments import read_bytes, read_segment

TOPIC_ID = bytes(range(16))


def row(key: bytes, value: bytes | None) -> dict[str, Any]:
    rows, unread = group_metadata(read_bytes(write_batch([Record(5, 1000, key=key, value=value)])).others)
    assert unread == []
    return dict(rows.to_pylist()[0])


def encoded(key: Any, value: Any = None) -> tuple[bytes, bytes | None]:
    return offsets_topic.encode_key(key), None if value is None else offsets_topic.encode_value(value, 0)


def test_epoch_of_a_group_is_its_generation() -> None:
    """Type 3: what a generation is to a classic group."""
    found = row(
        *encoded(kip848.ConsumerGroupMetadataKey(group_id="g"), kip848.ConsumerGroupMetadataValue(epoch=12))
    )
    assert (found["group"], found["kind"], found["generation"]) == ("g", "consumer_group_metadata", 12)
    assert found["members"] is None


def test_member_tells_client_and_subscription() -> None:
    """Type 5."""
    value = kip848.ConsumerGroupMemberMetadataValue(
        instance_id="i",
        rack_id=None,
        client_id="c",
        client_host="/10.0.0.1",
        subscribed_topic_names=["a", "b"],
        subscribed_topic_regex=None,
        rebalance_timeout_ms=300_000,
        server_assignor=None,
    )
    found = row(*encoded(kip848.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"), value))
    (member,) = found["members"]
    assert (member["member_id"], member["instance_id"], member["client_id"]) == ("m", "i", "c")
    assert (member["subscribed"], member["rebalance_timeout_ms"]) == (["a", "b"], 300_000)


def test_target_and_current_assignment_tell_partitions_by_topic_id() -> None:
    """Types 7 and 8: the records have no names of topics."""
    target = kip848.ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[TopicIdPartitions(topic_id=TOPIC_ID, partitions=[0, 3])]
    )
    key = kip848.ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id="m")
    assigned = [{"topic": "AAECAwQFBgcICQoLDA0ODw", "partition": number} for number in (0, 3)]
    assert row(*encoded(key, target))["members"][0]["assigned"] == assigned
    current = kip848.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=9,
        previous_member_epoch=8,
        state=0,
        assigned_partitions=[kip848.CurrentPartitions(topic_id=TOPIC_ID, partitions=[0, 3])],
        partitions_pending_revocation=[],
    )
    found = row(
        *encoded(kip848.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"), current)
    )
    assert (found["generation"], found["members"][0]["assigned"]) == (9, assigned)


def test_removed_member_is_named() -> None:
    """A tombstone has only its key, and that says who left."""
    found = row(*encoded(kip848.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m")))
    assert (found["is_removal"], found["members"][0]["member_id"]) == (True, "m")


@pytest.mark.parametrize(("kind", "has_member"), [(11, False), (14, True), (17, False), (22, True)])
def test_share_and_streams_groups_have_epochs_and_members_too(kind: int, has_member: bool) -> None:
    """Their values are not read as a whole; all begin with an epoch."""
    key = struct.pack(">hh1s", kind, 1, b"g") + (struct.pack(">h2s", 2, b"m1") if has_member else b"")
    found = row(key, struct.pack(">hi", 0, 77) + b"\0")
    assert (found["group"], found["generation"]) == ("g", 77)
    assert (found["members"] or [{}])[0].get("member_id") == ("m1" if has_member else None)


def test_value_that_cannot_be_read_keeps_its_row_and_is_told() -> None:
    """Kafka 3.7 wrote some in another form: group and bytes are known all the same."""
    key, _ = encoded(kip848.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"))
    read = read_bytes(write_batch([Record(5, 1000, key=key, value=b"\0\0\xff")]))
    rows, unread = group_metadata(read.others)
    assert rows["group"].to_pylist() == ["g"]
    ((record, reason),) = unread
    assert (record["log_offset"], record["position"]) == (5, 0)
    assert "3.7" in reason


def test_records_that_kafka_4_wrote_are_all_read() -> None:
    """Every type of a KIP-848 group, as a real broker wrote it."""
    kinds: dict[str, int] = {}
    for file in sorted(unpacked("kafka-4.3.1-coordinator-outage").rglob("__consumer_offsets-*/*.log")):
        rows, unread = group_metadata(read_segment(file).others)
        assert unread == []
        for found in rows.to_pylist():
            kinds[found["kind"]] = kinds.get(found["kind"], 0) + 1
            if not found["is_removal"] and found["kind"] != "consumer_group_target_assignment_member":
                assert found["generation"] is not None or found["members"], found
    assert {"group_metadata", "consumer_group_metadata", "consumer_group_member_metadata"} <= set(kinds)
