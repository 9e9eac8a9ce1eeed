"""A process with one consumer of a group: drives the machine on the virtual clock.

It can be killed (its session lives until its timeout), stopped for a while (SIGSTOP, a long pause of garbage
collection), or closed. An application whose start fails closes the consumer and ends, as the console consumer
does; one that `ignores_failures` goes on, and may become a zombie.
"""

from functools import partial

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.simulation.agenda import Chance
from kelpie.zookeeper.config import ZookeeperConsumerConfig
from kelpie.zookeeper.consumer_machine import ZookeeperConsumer
from kelpie.zookeeper.effects import (
    Ask,
    Effect,
    EndSession,
    RebalanceFailure,
    StartFetching,
    StopFetching,
    Tell,
)
from kelpie.zookeeper.procedures import Answers
from kelpie.zookeeper.simulation.server import Connection, SimulatedZookeeper
from kelpie.zookeeper.steps import Cause, RebalanceFailed

STOP_FETCHERS_MS = (15.0, 90.0)
"""What 0.8 needs to end its fetcher threads, if it has any."""
_RECONNECT_MS = (5.0, 1_000.0)


class SimulatedMember:
    def __init__(
        self,
        server: SimulatedZookeeper,
        config: ZookeeperConsumerConfig,
        consumer_id: str,
        chance: Chance,
        *,
        ignores_failures: bool = False,
    ) -> None:
        self.server = server
        self.config = config
        self.consumer_id = consumer_id
        self.machine = ZookeeperConsumer(config, consumer_id, draw=lambda below: chance.randrange(0, below))
        self.reading: dict[TopicPartition, int] = {}
        """What is being fetched, with the offsets at which it began."""
        self.is_alive = True
        """Neither killed nor ended by itself."""
        self.is_stopped = False
        self.is_out_of_date = False
        """It was stopped, and has not asked ZooKeeper since."""
        self.is_zombie = False
        """Its start has failed, and the application goes on all the same: nobody reads its streams."""
        self.left = False
        """It was closed by its operator, and not because its start failed."""
        self.sessions: list[int] = []
        """All that it ever had."""
        self._ignores_failures = ignores_failures
        self._chance = chance
        self._connection: Connection | None = None
        self._wake_noted: Instant | None = None

    # What happens to it.

    def start(self) -> None:
        self._do(self.machine.start(self._now))
        self._begin_session()

    def close(self) -> None:
        """A clean leave."""
        if self.is_alive:
            self.left = True
            self._do(self.machine.close(self._now))

    def kill(self) -> None:
        self.is_alive = False
        self.reading = {}
        if self._connection is not None:
            self.server.drop(self._connection)

    def stop(self, for_ms: float) -> None:
        """SIGSTOP, and SIGCONT after this time."""
        if not self.is_alive or self.is_stopped or self._connection is None:
            return
        self.is_stopped = self.is_out_of_date = True
        self.server.drop(self._connection)
        self.server.agenda.after(for_ms, self._continue)

    def lose_connection(self, for_ms: float = 0.0) -> None:
        """ZooKeeper does not answer, or the network is gone for so long."""
        if self._connection is not None and self._connection.is_open and self._is_running:
            self.server.drop(self._connection)
            self._do(self.machine.disconnected(self._now))
            self.server.agenda.after(for_ms, self._reconnect_later)

    @property
    def has_live_session(self) -> bool:
        return self._connection is not None and self.server.tree.has_session(self._connection.session)

    @property
    def has_failed(self) -> bool:
        """Whether a rebalance has failed, so far."""
        return any(isinstance(recorded.step, RebalanceFailed) for recorded in self.machine.history.steps)

    @property
    def failures(self) -> list[tuple[Instant, Cause]]:
        return [
            (recorded.at, recorded.step.cause)
            for recorded in self.machine.history.steps
            if isinstance(recorded.step, RebalanceFailed)
        ]

    # Its own doing.

    @property
    def _now(self) -> Instant:
        return self.server.agenda.now

    @property
    def _is_running(self) -> bool:
        return self.is_alive and not self.is_stopped

    def _begin_session(self) -> None:
        timeout_ms = self.config.session_timeout_ms
        self._connection = self.server.connect(timeout_ms, self._watch_fired, self._expired)
        self.sessions.append(self._connection.session)
        self._do(self.machine.connected(self._connection.session, self._now))

    def _continue(self) -> None:
        self.is_stopped = False
        if self.is_alive:
            self._do(self.machine.disconnected(self._now))
            self._reconnect_later()

    def _reconnect_later(self) -> None:
        self.server.agenda.after(self._chance.uniform(*_RECONNECT_MS), self._reconnect)

    def _reconnect(self) -> None:
        if not self._is_running or self._connection is None or self.machine.is_closed:
            return
        if self._connection.is_open:
            return
        if self.server.is_paused:
            self._reconnect_later()
        elif self.server.reconnect(self._connection):
            self.is_out_of_date = False
            self._do(self.machine.connected(self._connection.session, self._now))
        else:
            self.is_out_of_date = False
            self._do(self.machine.session_expired(self._now))
            if self._is_running and not self.machine.is_closed:
                self._begin_session()

    def _give_up(self) -> None:
        if self.is_alive:
            self._do(self.machine.close(self._now))

    def _expired(self) -> None:
        if self._is_running:
            self._do(self.machine.disconnected(self._now))
            self._reconnect_later()

    def _watch_fired(self, path: str) -> None:
        if self._is_running:
            self._do(self.machine.watch_fired(path, self._now))

    def _answered(self, token: int, answers: Answers) -> None:
        if self._is_running:
            self._do(self.machine.answered(token, answers, self._now))

    def _wake(self, noted: Instant) -> None:
        if self._wake_noted == noted:
            self._wake_noted = None
        if self._is_running:
            self._do(self.machine.woken(self._now))

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._do_one(effect)
        wake_at = self.machine.wake_at
        if wake_at is not None and (self._wake_noted is None or wake_at < self._wake_noted):
            self._wake_noted = wake_at
            self.server.agenda.at(wake_at, self._wake, wake_at)

    def _do_one(self, effect: Effect) -> None:
        match effect:
            case Ask(token, requests):
                assert self._connection is not None
                self.server.ask(self._connection, requests, partial(self._answered, token))
            case StartFetching(positions):
                self.reading = {partition: position.offset for partition, position in positions.items()}
            case StopFetching():
                if self.reading and self._connection is not None:
                    self.server.hold(self._connection, self._chance.uniform(*STOP_FETCHERS_MS))
                self.reading = {}
            case EndSession():
                self.is_alive = False
                self.reading = {}
                if self._connection is not None:
                    self.server.close(self._connection)
            case Tell(RebalanceFailure(recovers_in_ms=None)):
                self.is_zombie = self._ignores_failures
                if not self._ignores_failures:
                    self.server.agenda.after(0, self._give_up)
            case Tell():
                pass
