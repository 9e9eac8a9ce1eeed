"""The members of all groups: `python -m tests.doctor.slow_faults.members COURSE SERVERS`. They end
with standard input.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Event, Thread
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from kelpie.client import consumer as kelpie_consumer
from kelpie.client.settings import Settings
from tests.doctor.slow_faults.an_hour import AN_HOUR, BURST_S, PEAK_S, RARELY_S
from tests.doctor.slow_faults.groups import ANOTHER_HOST, POISON_OFFSET

_COMMIT_MS = 15_000
_A_WHILE_S = 180.0
"""Shorter than what any rule takes for a fault."""
_BATCH = 1000
_BURST_S = 60.0
_SESSION_MS = 60_000
"""On a busy machine, no member loses its session."""


class _WithoutLast:
    """What an assignor asks of the cluster, with the last partition of each topic forgotten."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    def partitions_for_topic(self, topic: str) -> set[int]:
        numbers: set[int] = self._cluster.partitions_for_topic(topic)
        return numbers - {max(numbers)}


class LeavesOneOut(RangePartitionAssignor):
    """An assignor that an application brings along, with a fault."""

    name = "leaves-one-out"
    until = float("inf")

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> Any:
        forgets = time.monotonic() < cls.until
        return super().assign(_WithoutLast(cluster) if forgets else cluster, members)


class LeavesOneOutForAWhile(LeavesOneOut):
    name = "leaves-one-out-for-a-while"


class Members:
    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.over = Event()

    def reads(self, group: str, client: str, topics: Sequence[str], records_a_second: int = _BATCH) -> None:
        """Commits what it has read, and reads no more than so much."""
        consumer = self._consumer(group, client)
        consumer.subscribe(list(topics))
        while not self.over.wait(1.0):
            consumer.consume(records_a_second, 0.1)
        consumer.close()

    def reads_slowly_at_first(self, group: str, records_a_second: int, slow_s: float) -> None:
        """Slow for a while, and then as fast as it can."""
        fast_from = time.monotonic() + slow_s
        consumer = self._consumer(group, f"{group}-1")
        consumer.subscribe(["views"])
        while not self.over.wait(1.0):
            consumer.consume(records_a_second if time.monotonic() < fast_from else _BATCH, 0.1)
        consumer.close()

    def reads_in_bursts(self, group: str, records_a_second: int, slow_s: float) -> None:
        """Slow again and again, and each time for a minute as fast as it can."""
        begun = time.monotonic()
        consumer = self._consumer(group, f"{group}-1")
        consumer.subscribe(["views"])
        while not self.over.wait(1.0):
            is_slow = (time.monotonic() - begun) % (slow_s + _BURST_S) < slow_s
            consumer.consume(records_a_second if is_slow else _BATCH, 0.1)
        consumer.close()

    def commits_rarely(self, group: str, every_s: float) -> None:
        """Reads all at once; commits at its first records, and then after so long."""
        consumer = self._consumer(group, f"{group}-1", **{"enable.auto.commit": False})
        consumer.subscribe(["views"])
        commit_at = time.monotonic()
        while not self.over.wait(1.0):
            if consumer.consume(_BATCH, 0.1) and time.monotonic() >= commit_at:
                consumer.commit(asynchronous=False)
                commit_at = time.monotonic() + every_s
        consumer.close()

    def by_kip_848(self, group: str, topics: Sequence[str], records_a_second: int) -> None:
        consumer = Consumer(self._settings(group, f"{group}-1") | {"group.protocol": "consumer"})
        consumer.subscribe(list(topics))
        while not self.over.wait(1.0):
            consumer.consume(records_a_second, 0.1)
        consumer.close()

    def fails_at_a_record(self, group: str, give_up_after_s: float = float("inf")) -> None:
        """It begins anew at a record of the first partition again and again; the others it reads."""
        consumer = self._consumer(group, f"{group}-1", **{"enable.auto.offset.store": False})
        consumer.subscribe(["payments"])
        skips_at = time.monotonic() + give_up_after_s
        while not self.over.wait(0.2):
            for message in consumer.consume(_BATCH, 0.1):
                if message.error() is not None:
                    continue
                is_poison = message.partition() == 0 and (message.offset() or 0) >= POISON_OFFSET
                if is_poison and time.monotonic() < skips_at:
                    consumer.seek(TopicPartition("payments", 0, POISON_OFFSET))
                else:
                    consumer.store_offsets(message)
        consumer.close()

    def with_assignor(self, group: str, assignor: type[LeavesOneOut], begin_s: float = 0.0) -> None:
        """A member of kafka-python: there an application can bring an assignor along."""
        if self.over.wait(begin_s):
            return
        consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=self.servers,
            group_id=group,
            client_id=f"{group}-1",
            partition_assignment_strategy=[assignor],
            auto_offset_reset="earliest",
            auto_commit_interval_ms=_COMMIT_MS,
            session_timeout_ms=_SESSION_MS,
        )
        while not self.over.wait(0.5):
            consumer.poll(500)
        consumer.close()

    def _consumer(self, group: str, client: str, **settings: object) -> Consumer:
        classic = {"partition.assignment.strategy": "range", "session.timeout.ms": _SESSION_MS}
        return Consumer(self._settings(group, client) | classic | settings)

    def _settings(self, group: str, client: str) -> dict[str, object]:
        return {
            "bootstrap.servers": self.servers,
            "group.id": group,
            "client.id": client,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": _COMMIT_MS,
            # A slow member comes to each of its partitions every few seconds.
            "queued.min.messages": 100,
            "fetch.message.max.bytes": 4000,
            "log_level": 0,
        }

    def of_an_hour(self) -> list[Callable[[], None]]:
        return [
            lambda: self.reads("slow", "slow-1", ("views",), 10),
            lambda: self.by_kip_848("slow-by-kip-848", ("views",), 10),
            lambda: self.reads("well", "well-1", ("views", "history")),
            lambda: self.commits_rarely("commits-rarely", RARELY_S),
            lambda: self.reads_in_bursts("in-bursts", 5, BURST_S),
            lambda: self.reads_slowly_at_first("peak", 10, PEAK_S),
            lambda: self.reads("catching-up", "catching-up-1", ("history",), 12),
        ]

    def of_minutes(self) -> list[Callable[[], None]]:
        LeavesOneOutForAWhile.until = time.monotonic() + _A_WHILE_S
        return [
            lambda: self.reads("well", "well-1", ("orders", "payments", "refunds")),
            lambda: self.with_assignor("left-out", LeavesOneOut),
            lambda: self.with_assignor("left-out-for-a-while", LeavesOneOutForAWhile),
            lambda: self.with_assignor("left-out-for-a-while", LeavesOneOutForAWhile, _A_WHILE_S),
            lambda: self.reads("two-applications", "billing-1", ("payments",)),
            lambda: self.from_address(ANOTHER_HOST, "two-applications", "returns-1", "refunds"),
            lambda: self.reads("two-names", "billing-1", ("payments",)),
            lambda: self.reads("two-names", "returns-1", ("refunds",)),
            lambda: self.reads("one-application", "ledger-1", ("payments",)),
            lambda: self.reads("one-application", "ledger-2", ("refunds",)),
            lambda: self.fails_at_a_record("poison"),
            lambda: self.fails_at_a_record("held-up-for-a-while", _A_WHILE_S),
            lambda: self.reads("slow", "slow-1", ("views",), 10),
            lambda: self.reads("fast", "fast-1", ("views", "clicks")),
            lambda: self.reads("catching-up", "catching-up-1", ("history",), 70),
            *(
                lambda number=number: self.reads("hot", f"hot-{number}", ("clicks",), 12)
                for number in range(4)
            ),
        ]

    def from_address(self, address: str, group: str, client: str, topic: str) -> None:
        """The same as `reads`, with Kelpie's own consumer, which can be told from where to connect."""
        asyncio.run(self._from_address(address, group, client, topic))

    async def _from_address(self, address: str, group: str, client: str, topic: str) -> None:
        settings = replace(Settings.of(self.servers), network=_From(address))
        options: dict[str, Any] = {
            "client_id": client,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": True,
            "auto_commit_interval_ms": _COMMIT_MS,
            "session_timeout_ms": _SESSION_MS,
        }
        async with kelpie_consumer.Consumer(settings, group, [topic], **options) as consumer:
            while not self.over.is_set():
                await consumer.poll(0.5)


class _From:
    """Connects from an address of this machine, as if it were another one."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def connect(self, host: str, port: int, protocol: asyncio.Protocol) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: protocol, host, port, local_addr=(self._address, 0))


def main(course: str, servers: str) -> None:
    members = Members(servers)
    tasks = members.of_an_hour() if course == AN_HOUR.name else members.of_minutes()
    threads = [Thread(target=task, daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    members.over.set()
    for thread in threads:
        thread.join(30)


if __name__ == "__main__":
    main(*sys.argv[1:])
