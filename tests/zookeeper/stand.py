"""A consumer on a ZooKeeper tree that answers at once, and a hand that can hold answers back."""

from kelpie.model.names import TopicPartition
from kelpie.zookeeper.config import Behaviour, PatternKind, Subscription, ZookeeperConsumerConfig
from kelpie.zookeeper.consumer_machine import ZookeeperConsumer
from kelpie.zookeeper.effects import (
    ApplicationEvent,
    Ask,
    Effect,
    EndSession,
    StartFetching,
    StopFetching,
    Tell,
)
from kelpie.zookeeper.nodes import GroupPaths, registration
from kelpie.zookeeper.requests import CreateEphemeral, Put, Request
from kelpie.zookeeper.simulation.tree import ZookeeperTree
from kelpie.zookeeper.steps import Step

PATHS = GroupPaths("g")
RETRIES, BACKOFF_MS, SESSION_MS = 3, 500, 6_000


def partition(number: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, number)


class Stand:
    """Other members of the group are only nodes of `others`, a session of their own."""

    def __init__(self, *, partitions: int = 4, has_broker: bool = True) -> None:
        self.tree = ZookeeperTree()
        self.kafka = self.tree.open_session()
        self.others = self.tree.open_session()
        self.now = 1_000_000
        self.consumers: list[Seat] = []
        if has_broker:
            self.add_broker()
        self.set_partitions("t", partitions)

    def add_broker(self) -> None:
        self.change(CreateEphemeral("/brokers/ids/1", b'{"host":"h","port":9092}'), self.kafka)

    def set_partitions(self, topic: str, number: int) -> None:
        partitions = ",".join(f'"{at}":[1]' for at in range(number))
        self.change(
            Put(f"/brokers/topics/{topic}", f'{{"partitions":{{{partitions}}}}}'.encode()), self.kafka
        )

    def other_member(self, name: str, session: int | None = None) -> None:
        self.change(CreateEphemeral(PATHS.member(name), registration(Subscription({"t": 1}), 1)), session)

    def other_owner(self, number: int, thread: str) -> None:
        self.change(CreateEphemeral(PATHS.owner(partition(number)), thread.encode()))

    def change(self, request: Request, session: int | None = None) -> None:
        self.tree.carry_out(self.others if session is None else session, request)
        self.fire()

    def end_session(self, session: int) -> None:
        self.tree.end_session(session)
        self.fire()

    def fire(self) -> None:
        for session, path in self.tree.take_fired():
            for seat in self.consumers:
                if seat.session == session and seat.is_connected:
                    seat.do(seat.machine.watch_fired(path, self.now))

    def consumer(
        self,
        behaviour: Behaviour,
        name: str = "c",
        *,
        pattern: str | None = None,
        auto_commit: bool = True,
        threads: int = 1,
    ) -> "Seat":
        subscription = (
            Subscription({"t": threads})
            if pattern is None
            else Subscription({pattern: threads}, PatternKind.WHITE_LIST)
        )
        config = ZookeeperConsumerConfig(
            group_id="g",
            subscription=subscription,
            behaviour=behaviour,
            session_timeout_ms=SESSION_MS,
            rebalance_max_retries=RETRIES,
            rebalance_backoff_ms=BACKOFF_MS,
            auto_commit_enable=auto_commit,
        )
        seat = Seat(self, ZookeeperConsumer(config, name, draw=lambda below: below - 1))
        self.consumers.append(seat)
        return seat

    def advance(self, ms: int) -> None:
        """Let time pass; whatever is due happens on the way."""
        until = self.now + ms
        while True:
            due = [
                (seat.machine.wake_at, at)
                for at, seat in enumerate(self.consumers)
                if seat.machine.wake_at is not None and seat.machine.wake_at <= until
            ]
            if not due:
                break
            wake_at, at = min(due)
            self.now = max(self.now, wake_at)
            seat = self.consumers[at]
            seat.do(seat.machine.woken(self.now))
        self.now = until


class Seat:
    def __init__(self, stand: Stand, machine: ZookeeperConsumer) -> None:
        self.stand = stand
        self.machine = machine
        self.session = 0
        self.is_connected = False
        self.reading: dict[TopicPartition, int] = {}
        self.told: list[ApplicationEvent] = []
        self.asked: list[Request] = []
        self.held: list[Ask] | None = None
        """If a list: asks are kept here, and not carried out."""
        self.is_ended = False

    def start(self) -> "Seat":
        self.do(self.machine.start(self.stand.now))
        self.connect()
        return self

    def connect(self, session: int | None = None) -> None:
        self.session = self.stand.tree.open_session() if session is None else session
        self.is_connected = True
        self.do(self.machine.connected(self.session, self.stand.now))

    def disconnect(self) -> None:
        self.is_connected = False
        self.do(self.machine.disconnected(self.stand.now))

    def expire(self) -> None:
        """ZooKeeper ends the session, and the consumer learns it."""
        self.is_connected = False
        self.stand.end_session(self.session)
        self.do(self.machine.disconnected(self.stand.now))
        self.do(self.machine.session_expired(self.stand.now))

    def close(self) -> None:
        self.do(self.machine.close(self.stand.now))

    def release_held(self) -> None:
        held, self.held = self.held or [], None
        for ask in held:
            self.do([ask])

    def consume(self, number: int, next_offset: int) -> None:
        self.do(self.machine.consumed(partition(number), next_offset, self.stand.now))

    def steps(self, *kinds: type[Step]) -> list[Step]:
        return [
            recorded.step
            for recorded in self.machine.history.steps
            if not kinds or isinstance(recorded.step, kinds)
        ]

    def do(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Ask():
                    if self.held is not None:
                        self.held.append(effect)
                    else:
                        self._carry_out(effect)
                case StartFetching(positions):
                    self.reading = {at: position.offset for at, position in positions.items()}
                case StopFetching():
                    self.reading = {}
                case EndSession():
                    self.is_ended = True
                    self.is_connected = False
                    self.stand.end_session(self.session)
                case Tell(event):
                    self.told.append(event)

    def _carry_out(self, ask: Ask) -> None:
        self.asked += ask.requests
        answers = tuple(self.stand.tree.carry_out(self.session, request) for request in ask.requests)
        self.stand.fire()
        self.do(self.machine.answered(ask.token, answers, self.stand.now))
