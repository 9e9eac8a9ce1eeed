"""Groups: members share partitions, come, go and die, and the group goes on where it was."""

import time
from collections import Counter
from typing import Any

from tests.lab.clients import member
from tests.lab.clients.clusters import Kafka
from tests.lab.clients.contract import Message
from tests.lab.clients.scenarios.scenario import Scenario, name, numbered, poll_until, share, take, values

PARTITIONS = 6
CALM_S = 2.0


class Groups(Scenario):
    def test_members_share_partitions_and_take_over_from_one_that_leaves(self, kafka: Kafka) -> None:
        """One, two, three members, then two: each record is seen by one of them, once."""
        topic, group = kafka.create_topic(PARTITIONS), name("group")
        seen: Counter[bytes] = Counter()

        def count(_: int, message: Message) -> None:
            seen.update(values([message]))

        with self.consumer(kafka, group=group) as first, self.consumer(kafka, group=group) as second:
            first.subscribe(topic)
            poll_until([first], lambda: share([first], PARTITIONS))
            second.subscribe(topic)
            poll_until([first, second], lambda: share([first, second], PARTITIONS))
            with self.consumer(kafka, group=group) as third:
                third.subscribe(topic)
                everybody = [first, second, third]
                poll_until(everybody, lambda: share(everybody, PARTITIONS))
                assert {len(one.assignment()) for one in everybody} == {2}
                self.fill(kafka, topic, numbered(60), PARTITIONS)
                poll_until(everybody, lambda: len(seen) == 60, count)
                for one in everybody:
                    one.commit()

            poll_until([first, second], lambda: share([first, second], PARTITIONS), count)
            self.fill(kafka, topic, numbered(60, 60), PARTITIONS)
            poll_until([first, second], lambda: len(seen) == 120, count)

        assert sorted(seen) == numbered(120)
        assert set(seen.values()) == {1}

    def test_partitions_of_a_killed_member_go_to_the_others(self, kafka: Kafka) -> None:
        """It sends no goodbye; its session has to run out first."""
        topic, group = kafka.create_topic(PARTITIONS), name("group")
        driver = type(self.client).__module__
        with (
            self.consumer(kafka, group=group) as survivor,
            member.running(driver, kafka.bootstrap_servers, group, topic, session_ms=1000) as doomed,
        ):
            survivor.subscribe(topic)
            poll_until([survivor], lambda: len(survivor.assignment()) == PARTITIONS // 2)
            poll_until([survivor], lambda: kafka.is_stable(group, members=2))

            doomed.kill()

            poll_until([survivor], lambda: share([survivor], PARTITIONS))
            assert kafka.is_stable(group, members=1)
            self.fill(kafka, topic, numbered(30), PARTITIONS)
            assert sorted(values(take(survivor, 30))) == numbered(30)

    def test_next_member_goes_on_where_the_last_one_committed(self, kafka: Kafka) -> None:
        """Commits that wait and commits that do not; what was read but not committed is read again."""
        topic, group = kafka.create_topic(), name("group")
        self.fill(kafka, topic, numbered(30))
        with self.consumer(kafka, group=group) as consumer:
            consumer.subscribe(topic)
            take(consumer, 30)
            assert consumer.committed(topic, [0]) == {0: None}
            consumer.commit({0: 10})
            assert consumer.committed(topic, [0]) == {0: 10}
            low, high = consumer.bounds(topic, 0)
            assert (low, high - 10) == (0, 20)  # What is left to read: the lag.

        with self.consumer(kafka, group=group) as consumer:
            consumer.subscribe(topic)
            assert values(take(consumer, 20)) == numbered(20, 10)
            consumer.commit_later()
            kafka.wait_until(lambda: consumer.committed(topic, [0]) == {0: 30})

        with self.consumer(kafka, group=group) as consumer:
            consumer.subscribe(topic)
            assert values(self.first_to_come(kafka, topic, consumer))[0] == b"new"

    def test_group_without_commits_begins_where_it_is_told_to(self, kafka: Kafka) -> None:
        """auto.offset.reset decides, for a group as for a lone reader."""
        topic = kafka.create_topic()
        self.fill(kafka, topic, numbered(5))
        with self.consumer(kafka, group=name("group"), reset="latest") as consumer:
            consumer.subscribe(topic)
            poll_until([consumer], lambda: share([consumer], 1))
            assert self.first_to_come(kafka, topic, consumer)[0].value == b"new"
        with self.consumer(kafka, group=name("group"), reset="earliest") as consumer:
            consumer.subscribe(topic)
            assert values(take(consumer, 5))[:5] == numbered(5)


class Calm:
    """Whether a consumer's partitions have not changed for a while."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._seen, self._since = -1, 0.0

    def __call__(self) -> bool:
        now, seen = time.monotonic(), len(self._consumer.changes)
        if seen != self._seen:
            self._seen, self._since = seen, now
        return now - self._since > CALM_S


class StaticMembership(Scenario):
    def test_static_member_returns_to_its_partitions_without_a_rebalance(self, kafka: Kafka) -> None:
        """KIP-345: a restart within the session disturbs nobody.

        The first member is the group's leader. kafka-python sends a second JoinGroup if the answer to the
        first comes between two polls; a leader that joins again begins a rebalance, and another member does
        not. So the member that restarts is not the leader.
        """
        topic, group = kafka.create_topic(PARTITIONS), name("group")
        options = {"group": group, "session_ms": 30_000}  # Longer than a busy machine is ever away.
        with self.consumer(kafka, **options, instance="stays") as stays:
            stays.subscribe(topic)
            poll_until([stays], lambda: share([stays], PARTITIONS))
            with self.consumer(kafka, **options, instance="restarts") as restarts:
                restarts.subscribe(topic)
                poll_until([stays, restarts], lambda: share([stays, restarts], PARTITIONS))
                calm = Calm(stays)  # Some clients join once more after the group was stable.
                poll_until([stays, restarts], lambda: kafka.is_stable(group, members=2) and calm())
                mine = restarts.assignment()
                changes = list(stays.changes)

            assert kafka.is_stable(group, members=2)
            with self.consumer(kafka, **options, instance="restarts") as again:
                again.subscribe(topic)
                poll_until([stays, again], lambda: again.assignment() == mine)
                self.fill(kafka, topic, numbered(30), PARTITIONS)
                seen: list[Message] = []
                poll_until([stays, again], lambda: len(seen) == 30, lambda _, message: seen.append(message))

            assert stays.changes == changes
            assert sorted(values(seen)) == numbered(30)


class CooperativeMembership(Scenario):
    def test_cooperative_members_keep_what_they_need_not_give_away(self, kafka: Kafka) -> None:
        """KIP-429: of six partitions three move; the others are never revoked."""
        topic, group = kafka.create_topic(PARTITIONS), name("group")
        options = {"group": group, "assignor": "cooperative-sticky"}
        with self.consumer(kafka, **options) as first, self.consumer(kafka, **options) as second:
            first.subscribe(topic)
            poll_until([first], lambda: share([first], PARTITIONS))
            second.subscribe(topic)
            poll_until([first, second], lambda: share([first, second], PARTITIONS))
            revoked = [moved for what, moved in first.changes if what == "revoked" and moved]

            assert revoked == [second.assignment()]
            assert len(first.assignment()) == 3
            self.fill(kafka, topic, numbered(30), PARTITIONS)
            seen: list[Message] = []
            poll_until([first, second], lambda: len(seen) == 30, lambda _, message: seen.append(message))
            assert sorted(values(seen)) == numbered(30)
