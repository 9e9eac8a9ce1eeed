"""Administration: topics, configurations, groups and their offsets, and how mistakes are answered."""

from functools import partial

import pytest

from tests.lab.clients.clusters import Kafka
from tests.lab.clients.contract import Consumer, Group, GroupAdmin, Refused
from tests.lab.clients.scenarios.scenario import Scenario, name, numbered, poll_until, share, take, values

UNKNOWN_TOPIC_OR_PARTITION = 3
OFFSET_OUT_OF_RANGE = 1
INVALID_TOPIC = 17
UNKNOWN_MEMBER_ID = 25
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69
ELECTION_NOT_NEEDED = 84


def _as_they_say(described: Group, **members: Consumer) -> bool:
    """Whether the group is stable and each of its members, by client id, owns what it says it owns."""
    return described.state == "Stable" and {(it.client_id, it.partitions) for it in described.members} == {
        (client_id, member.assignment()) for client_id, member in members.items()
    }


class TopicAdministration(Scenario):
    def test_topics_are_created_described_and_deleted(self, kafka: Kafka) -> None:
        """Replicas are spread, and a deleted topic is gone for everybody."""
        topic = name("admin")
        with self.admin(kafka) as admin:
            admin.create_topic(topic, 4, 2, {"cleanup.policy": "compact"})
            kafka.wait_until(lambda: topic in admin.topics())
            for node in kafka.alive:  # The client asks any of them, and one may hear of it later.
                kafka.wait_until(partial(kafka.knows_leaders, topic, 4, node))
            replicas = admin.replicas(topic)
            assert all(len(set(nodes)) == 2 and set(nodes) <= {1, 2, 3} for nodes in replicas.values())
            assert {nodes[0] for nodes in replicas.values()} == {1, 2, 3}

            admin.delete_topic(topic)
            kafka.wait_until(lambda: topic not in admin.topics())

    def test_mistakes_are_refused_with_kafkas_codes(self, kafka: Kafka) -> None:
        """Clients decide by the code whether to try again."""
        topic = kafka.create_topic(partitions=2)

        def refused(call: object, *arguments: object) -> int:
            assert callable(call)
            with pytest.raises(Refused) as error:
                call(*arguments)
            return error.value.code

        with self.admin(kafka) as admin:
            assert refused(admin.create_topic, topic, 1, 1, {}) == TOPIC_ALREADY_EXISTS
            assert refused(admin.create_topic, name("admin"), 1, 4, {}) == INVALID_REPLICATION_FACTOR
            assert refused(admin.create_topic, name("admin"), 0, 1, {}) == INVALID_PARTITIONS
            assert refused(admin.create_topic, "no spaces", 1, 1, {}) == INVALID_TOPIC
            assert refused(admin.create_topic, name("a"), 1, 1, {"cleanup.policy": "hay"}) == INVALID_CONFIG
            assert refused(admin.create_topic, name("a"), 1, 1, {"no.such": "thing"}) == INVALID_CONFIG
            assert refused(admin.delete_topic, name("nowhere")) == UNKNOWN_TOPIC_OR_PARTITION
            assert refused(admin.add_partitions, topic, 1) == INVALID_PARTITIONS
            assert refused(admin.alter_config, topic, {"retention.ms": "soon"}) == INVALID_CONFIG

    def test_partitions_are_added_and_used(self, kafka: Kafka) -> None:
        """They begin empty, and producers find them."""
        topic = kafka.create_topic()
        with self.admin(kafka) as admin:
            admin.add_partitions(topic, 3)
            for node in kafka.alive:
                kafka.wait_until(partial(kafka.knows_leaders, topic, 3, node))
            assert sorted(admin.replicas(topic)) == [0, 1, 2]
        self.fill(kafka, topic, numbered(9), partitions=3)
        assert sorted(values(self.read(kafka, topic, 9, partitions=3))) == numbered(9)

    def test_configuration_is_changed_and_shown(self, kafka: Kafka) -> None:
        """What was set at creation, what was changed since, and the broker's default for the rest."""
        topic = kafka.create_topic(retention_ms=1_000_000)
        with self.admin(kafka) as admin:
            before = admin.config(topic)
            assert before["retention.ms"] == "1000000"
            assert before["cleanup.policy"] == "delete"
            assert before["min.insync.replicas"] == "2"
            # aiokafka knows only the old API, which takes the whole configuration.
            admin.alter_config(topic, {"retention.ms": "1000000", "max.message.bytes": "2000"})
            changed = {**before, "max.message.bytes": "2000"}
            # Each question may go to another broker, and some brokers hear of the change later.
            kafka.wait_until(lambda: admin.config(topic) == changed)

    def test_deleted_records_are_gone(self, kafka: Kafka) -> None:
        """The log begins later, and more than there is cannot be deleted."""
        topic = kafka.create_topic()
        self.fill(kafka, topic, numbered(10))
        with self.admin(kafka) as admin:
            assert admin.delete_records(topic, 0, 6) == 6
            with pytest.raises(Refused) as refused:
                admin.delete_records(topic, 0, 11)
        assert refused.value.code == OFFSET_OUT_OF_RANGE
        assert values(self.read(kafka, topic, 4)) == numbered(4, 6)
        with self.consumer(kafka) as consumer:
            assert consumer.bounds(topic, 0) == (6, 10)

    def test_groups_are_listed_and_described(self, kafka: Kafka) -> None:
        """Who is in it, who owns what, by which protocol, and what is committed."""
        topic, group = kafka.create_topic(partitions=4), name("group")
        self.fill(kafka, topic, numbered(8), partitions=4)
        with (
            self.admin(kafka) as admin,
            self.consumer(kafka, group=group, client_id="one") as one,
            self.consumer(kafka, group=group, client_id="two") as two,
        ):
            one.subscribe(topic)
            two.subscribe(topic)
            poll_until([one, two], lambda: share([one, two], 4))
            poll_until([one, two], lambda: _as_they_say(admin.describe_group(group), one=one, two=two))
            assert admin.describe_group(group).assignor == "range"
            assert group in admin.groups()
            one.commit(dict.fromkeys(one.assignment(), 1))
            assert admin.offsets(group) == {(topic, partition): 1 for partition in one.assignment()}
            one.close()
            two.close()
            kafka.wait_until(lambda: admin.describe_group(group).state == "Empty")
            assert admin.describe_group(group).members == ()


class GroupAdministration(Scenario):
    def committed(self, kafka: Kafka, group: str) -> str:
        topic = kafka.create_topic(partitions=2)
        self.fill(kafka, topic, numbered(20), partitions=2)
        with self.consumer(kafka, group=group) as consumer:
            consumer.subscribe(topic)
            take(consumer, 20)
            consumer.commit()
        kafka.wait_until(lambda: kafka.group(group).group_state == "Empty")
        return topic

    def test_offsets_of_an_empty_group_are_changed(self, kafka: Kafka) -> None:
        """A reset by hand: the next member starts there. While somebody is in, it is refused."""
        group = name("group")
        topic = self.committed(kafka, group)
        with self.admin(kafka) as admin:
            assert isinstance(admin, GroupAdmin)
            assert admin.offsets(group) == {(topic, 0): 10, (topic, 1): 10}
            admin.alter_offsets(group, topic, {0: 3})
            assert admin.offsets(group) == {(topic, 0): 3, (topic, 1): 10}
            with self.consumer(kafka, group=group) as consumer:
                consumer.subscribe(topic)
                assert [m.offset for m in take(consumer, 7)] == list(range(3, 10))
                with pytest.raises(Refused) as refused:
                    admin.alter_offsets(group, topic, {0: 0})
        assert refused.value.code == UNKNOWN_MEMBER_ID

    def test_empty_groups_are_deleted_and_others_not(self, kafka: Kafka) -> None:
        """With the group its offsets go; a group that is not there cannot be deleted."""
        group = name("group")
        topic = self.committed(kafka, group)
        with self.admin(kafka) as admin:
            with self.consumer(kafka, group=group) as consumer:
                consumer.subscribe(topic)
                poll_until([consumer], lambda: share([consumer], 2))
                with pytest.raises(Refused) as busy:
                    admin.delete_group(group)
            kafka.wait_until(lambda: kafka.group(group).group_state == "Empty")
            admin.delete_group(group)
            kafka.wait_until(lambda: group not in admin.groups())
            assert admin.offsets(group) == {}
            with pytest.raises(Refused) as gone:
                admin.delete_group(group)
        assert (busy.value.code, gone.value.code) == (NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND)

    def test_election_that_is_not_needed_is_refused(self, kafka: Kafka) -> None:
        """The preferred replica leads already."""
        topic = kafka.create_topic()
        with self.admin(kafka) as admin, pytest.raises(Refused) as refused:
            admin.elect_preferred(topic, 0)
        assert refused.value.code == ELECTION_NOT_NEEDED
