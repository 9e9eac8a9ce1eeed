"""The assignors against those of Kafka 4.3.1, for random groups."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kelpie.assignors import ASSIGNORS, MemberSubscription, Plan, assignment, member_of, subscription
from kelpie.model.names import TopicPartition
from kelpie.wire.consumer_protocol import partitions_in
from tests.assignors.subscriptions import Group, groups, unevenness
from tests.lab.java.jvm import KafkaJvm

pytestmark = pytest.mark.real

_CLASSES = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
_few = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _kafkas(java: KafkaJvm, name: str, group: Group) -> Plan:
    """What Kafka's own class answers; subscriptions reach it as the bytes that Kelpie writes."""
    jvm = java.jvm
    subscriptions = jvm.java.util.HashMap()
    for member in group.members:
        blob = _told(name, member)
        buffer = jvm.java.nio.ByteBuffer.wrap(blob)
        read = jvm.org.apache.kafka.clients.consumer.internals.ConsumerProtocol.deserializeSubscription(
            buffer
        )
        read.setGroupInstanceId(jvm.java.util.Optional.ofNullable(member.instance_id))
        subscriptions.put(member.member_id, read)
    counts = jvm.java.util.HashMap()
    for topic in {topic for topic, _ in group.partitions}:  # Kafka's caller leaves the others out, too.
        counts.put(topic, group.counts[topic])
    assignor = getattr(jvm.org.apache.kafka.clients.consumer, _CLASSES[name])()
    plan = assignor.assign(counts, subscriptions)
    return {member_id: sorted(_read(found)) for member_id, found in plan.items()}


def _told(name: str, member: MemberSubscription) -> bytes:
    return subscription(
        name, member.topics, member.owned, member.generation, member.owned, remembered_in=member.generation
    )


def _read(partitions: Any) -> list[TopicPartition]:
    return [TopicPartition(each.topic(), each.partition()) for each in partitions]


@pytest.mark.parametrize("name", ["range", "roundrobin"])
@given(group=groups())
@_few
def test_range_and_roundrobin_are_kafkas(java: KafkaJvm, name: str, group: Group) -> None:
    """In a mixed group the leader may be anyone's client, and all must come to the same."""
    assert _sorted(ASSIGNORS[name].assign(group.members, group.counts)) == _kafkas(java, name, group)


@given(group=groups(equal=True))
@_few
def test_first_sticky_assignment_is_kafkas(java: KafkaJvm, group: Group) -> None:
    """Where nobody owns anything and all read the same, there is nothing to choose."""
    ours = ASSIGNORS["sticky"].assign(group.members, group.counts)
    assert _sorted(ours) == _kafkas(java, "sticky", group)


@given(group=groups(equal=True, owning="theirs"))
@_few
def test_equal_subscriptions_keep_as_much_as_with_kafka(java: KafkaJvm, group: Group) -> None:
    """Same shares, as few moves; which partition moves is a choice in Java's hash order."""
    ours = ASSIGNORS["sticky"].assign(group.members, group.counts)
    theirs = _kafkas(java, "sticky", group)
    assert sorted(map(len, ours.values())) == sorted(map(len, theirs.values()))
    assert _kept(group, ours) == _kept(group, theirs)


@given(group=groups(equal=True, owning="theirs"))
@_few
def test_cooperative_round_withholds_as_little_as_with_kafka(java: KafkaJvm, group: Group) -> None:
    """What is to move is withheld, all else is given: as many partitions as Kafka gives."""
    ours = ASSIGNORS["cooperative-sticky"].assign(group.members, group.counts)
    theirs = _kafkas(java, "cooperative-sticky", group)
    assert sum(map(len, ours.values())) == sum(map(len, theirs.values()))
    assert _kept(group, ours) == _kept(group, theirs)


@given(group=groups(equal=False, owning="theirs"))
@_few
def test_differing_subscriptions_are_at_least_as_even_as_with_kafka(java: KafkaJvm, group: Group) -> None:
    """Kafka looks for single moves, Kelpie for chains of them."""
    ours = ASSIGNORS["sticky"].assign(group.members, group.counts)
    assert unevenness(ours) <= unevenness(_kafkas(java, "sticky", group))


@given(group=groups(owning="theirs"), name=st.sampled_from(sorted(ASSIGNORS)))
@_few
def test_kafka_reads_and_writes_the_same_bytes(java: KafkaJvm, name: str, group: Group) -> None:
    """The blobs are between clients: no broker would notice a mistake."""
    protocol = java.jvm.org.apache.kafka.clients.consumer.internals.ConsumerProtocol
    member = group.members[0]
    blob = _told(name, member)
    again = protocol.serializeSubscription(
        protocol.deserializeSubscription(java.jvm.java.nio.ByteBuffer.wrap(blob))
    )
    assert bytes(again.array()) == blob
    read = member_of(name, member.member_id, member.instance_id, blob)
    assert (set(read.owned), set(read.topics)) == (set(member.owned), set(member.topics))
    given_ = assignment(member.owned)
    theirs = protocol.deserializeAssignment(java.jvm.java.nio.ByteBuffer.wrap(given_))
    assert _read(theirs.partitions()) == partitions_in(given_) == sorted(member.owned)


def _kept(group: Group, plan: Plan) -> int:
    return sum(len(set(member.owned) & set(plan[member.member_id])) for member in group.members)


def _sorted(plan: Plan) -> Plan:
    """Within a member's share the order is that of Java's hash maps, and means nothing."""
    return {member_id: sorted(own) for member_id, own in plan.items()}
