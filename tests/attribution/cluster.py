"""Brokers with one plan and one store, for tests that put events in an order of their own."""

from collections import deque

from kelpie.attribution.addresses import ClientAddress
from kelpie.attribution.counters import Amount, Counters
from kelpie.attribution.plan import AssignedMember, Plan, Removal
from kelpie.attribution.plans import PLANS
from kelpie.attribution.requests import Request
from kelpie.attribution.store import MemoryStore
from kelpie.model.names import TopicPartition

P0, P1, P2 = (TopicPartition("orders", number) for number in range(3))
APP = ClientAddress("10.0.0.7", "app")
ONE = Amount(1, 100, 1)


class Cluster:
    """Requests are carried out at once, unless their broker is told to wait."""

    def __init__(self, plan: str, brokers: int = 3) -> None:
        self.plan = PLANS[plan]
        self.store = MemoryStore()
        self.now = 1_000_000
        self.counters = {number: Counters() for number in range(1, brokers + 1)}
        self.brokers = {number: self.plan(number, 1, counters) for number, counters in self.counters.items()}
        self.delayed: dict[int, deque[Request]] = {}
        """Requests that wait, by broker."""

    def send(self, broker: int, requests: list[Request]) -> None:
        waiting = self.delayed.get(broker)
        if waiting is not None:
            waiting.extend(requests)
            return
        for request in requests:
            result = self.store.carry_out(request)
            self.send(broker, self.brokers[broker].answered(request, result, self.now))

    def delay(self, broker: int) -> None:
        self.delayed[broker] = deque()

    def deliver(self, broker: int) -> None:
        for request in self.delayed.pop(broker):
            self.send(broker, [request])

    def fail(self, broker: int) -> None:
        """Nothing of what waits is carried out."""
        for request in self.delayed.pop(broker):
            self.send(broker, self.brokers[broker].failed(request, self.now))

    def wait(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1_000
            for number, plan in self.brokers.items():
                self.send(number, plan.tick(self.now))

    def restart(self, broker: int) -> None:
        """Killed: a new object, which knows nothing of the old one."""
        self.delayed.pop(broker, None)
        self.counters[broker] = Counters()
        self.brokers[broker] = self.plan(broker, self.now, self.counters[broker])

    def find(self, broker: int, group: str, client: ClientAddress = APP, connection: str = "find") -> None:
        self.send(broker, self._of(broker).coordinator_found(connection, client, group, self.now))

    def load(
        self, broker: int, group: str, epoch: int, members: dict[str, AssignedMember] | None = None
    ) -> None:
        self.send(broker, self._of(broker).group_loaded(group, members or {}, epoch, self.now))

    def join(
        self, broker: int, group: str, member: str, client: ClientAddress = APP, connection: str = "join"
    ) -> None:
        self.send(broker, self._of(broker).member_joined(connection, client, member, group, self.now))

    def assign(
        self, broker: int, group: str, member: str, *partitions: TopicPartition, client: ClientAddress = APP
    ) -> None:
        assignment = {member: AssignedMember(client, frozenset(partitions))}
        self.send(broker, self._of(broker).assignment_made(group, assignment, self.now))

    def remove(
        self, broker: int, group: str, member: str, reason: Removal, client: ClientAddress = APP
    ) -> None:
        self.send(broker, self._of(broker).member_removed(group, member, client, reason, self.now))

    def close(self, broker: int, connection: str) -> None:
        self.send(broker, self._of(broker).connection_closed(connection, self.now))

    def stop(self, broker: int, *connections: str) -> None:
        """A clean stop."""
        self.send(broker, self._of(broker).shutting_down(self.now))
        for connection in connections:
            self.close(broker, connection)

    def fetch(
        self, broker: int, partition: TopicPartition, connection: str, client: ClientAddress = APP
    ) -> None:
        self.send(broker, self._of(broker).fetched(connection, client, partition, ONE, self.now))

    def labels(self, broker: int) -> dict[str, int]:
        """Messages by label."""
        messages: dict[str, int] = {}
        for series, amount in self.counters[broker].amounts.items():
            messages[series.group] = messages.get(series.group, 0) + amount.messages
        return messages

    def nodes(self, root: str) -> dict[str, bytes]:
        return self.store.listing(root)

    def consumer(self, group: str, *partitions: TopicPartition, client: ClientAddress = APP) -> None:
        """Finds its coordinator at broker 1, joins at broker 2, and has its partitions."""
        self.find(1, group, client, connection=f"find-{group}")
        self.load(2, group, 1)
        self.join(2, group, f"{group}-m", client, connection=f"join-{group}")
        self.assign(2, group, f"{group}-m", *partitions, client=client)

    def _of(self, broker: int) -> Plan:
        return self.brokers[broker]
