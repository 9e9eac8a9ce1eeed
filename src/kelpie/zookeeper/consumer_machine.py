"""The consumer of Kafka 0.8 as a machine: it takes part in a group by way of ZooKeeper.

    consumer = ZookeeperConsumer(config, consumer_id, draw=random.randrange)
    effects = consumer.start(now)

Events are methods. Each takes `now` and returns effects, in order (`effects.py`):

| event | when the driver calls it |
|---|---|
| `start` | once; the session may come before or after |
| `connected(session)` | ZooKeeper answers: a first session, the same one again, or a new one |
| `disconnected` | the connection is lost, the session may live on |
| `session_expired` | ZooKeeper said that the session has expired, or the driver gave it up |
| `answered(token, answers)` | all requests of an `Ask` have been answered |
| `watch_fired(path)` | a one-shot watch fired; for a change while ZooKeeper was away, after `connected` |
| `consumed(partition, next_offset)` | the application has consumed all records before this offset |
| `commit` | on demand, for consumers that do not commit by themselves |
| `woken` | at `wake_at`, which may change with every event |
| `close` | once; the machine is done when it returned `EndSession` |

Of the driver it needs: an `Ask` is carried out in the session in which it was returned, or not at all;
answers of one connection come in order; what was not answered when the connection was lost is never answered
(the machine asks again); between `StopFetching` and the next `StartFetching` the application gets no record.

`Behaviour.FAITHFUL` is Kafka 0.8.2.2 with its faults (`faithful.py`), `Behaviour.RECOVERING` is Kelpie's own
(`recovering.py`). Both speak the same protocol and can be members of one group. Every step is recorded in
`history` with a sentence; `log_lines.py` writes steps as Kafka 0.8 logs them.
"""

from collections.abc import Callable

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.zookeeper.config import ZookeeperConsumerConfig
from kelpie.zookeeper.effects import Effect, EndSession
from kelpie.zookeeper.faithful import FaithfulThreads
from kelpie.zookeeper.member import Member
from kelpie.zookeeper.procedures import Answers
from kelpie.zookeeper.recovering import RecoveringThreads
from kelpie.zookeeper.steps import Disconnected, Reconnected, SessionBegan, StepHistory


class ZookeeperConsumer:
    def __init__(self, config: ZookeeperConsumerConfig, consumer_id: str, draw: Callable[[int], int]) -> None:
        """`consumer_id` as `nodes.consumer_id` makes it; `draw` gives a random number below the one given."""
        self.config = config
        self.consumer_id = consumer_id
        self._member = Member(config, consumer_id, draw)
        self._threads = (
            FaithfulThreads(self._member) if self._member.is_faithful else RecoveringThreads(self._member)
        )
        self._is_expired = False
        self.is_closed = False

    # Events.

    def start(self, now: Instant) -> list[Effect]:
        self._member.now = now
        self._threads.start()
        return self._outcome()

    def connected(self, session: int, now: Instant) -> list[Effect]:
        """A session that is not the last one means that the last one has expired, also if nobody said so."""
        member = self._member
        if self._is_deaf(now):
            return []
        if member.session not in (0, session) and not self._is_expired:
            self._expire()
        is_first, is_new = not member.session, session != member.session
        member.session = session
        member.is_connected = True
        self._is_expired = False
        member.record(SessionBegan(session, is_first) if is_new else Reconnected(session))
        self._threads.connected(is_new=is_new)
        return self._outcome()

    def disconnected(self, now: Instant) -> list[Effect]:
        member = self._member
        if self._is_deaf(now) or not member.is_connected:
            return []
        member.connection_lost()
        member.record(Disconnected())
        self._threads.disconnected()
        return self._outcome()

    def session_expired(self, now: Instant) -> list[Effect]:
        if self._is_deaf(now) or self._is_expired or not self._member.session:
            return []
        self._expire()
        return self._outcome()

    def answered(self, token: int, answers: Answers, now: Instant) -> list[Effect]:
        if self._is_deaf(now):
            return []
        self._member.answered(token, answers)
        return self._outcome()

    def watch_fired(self, path: str, now: Instant) -> list[Effect]:
        if self._is_deaf(now):
            return []
        self._threads.watch_fired(path)
        return self._outcome()

    def consumed(self, partition: TopicPartition, next_offset: int, now: Instant) -> list[Effect]:
        if not self._is_deaf(now):
            owned = self._member.owned.get(partition)
            if owned is not None and self._member.is_fetching:
                owned.offset = next_offset
        return []

    def commit(self, now: Instant) -> list[Effect]:
        if self._is_deaf(now) or self._member.is_closing or self._member.procedures.is_running("commit"):
            return []
        self._member.procedures.begin("commit", self._member.commit())
        return self._outcome()

    def woken(self, now: Instant) -> list[Effect]:
        return [] if self._is_deaf(now) else self._outcome()

    def close(self, now: Instant) -> list[Effect]:
        if self._is_deaf(now) or self._member.is_closing:
            return []
        self._threads.close()
        return self._outcome()

    # What can be seen.

    @property
    def wake_at(self) -> Instant | None:
        """When to call `woken`; None: nothing waits for a time."""
        return None if self.is_closed else self._member.procedures.wake_at

    @property
    def history(self) -> StepHistory:
        return self._member.history

    @property
    def owned(self) -> dict[TopicPartition, int]:
        """The partitions that it reads, with the next offset that the application will consume."""
        if not self._member.is_fetching:
            return {}
        return {partition: owned.offset for partition, owned in self._member.owned.items()}

    @property
    def is_rebalancing(self) -> bool:
        return self._member.is_rebalancing

    def _is_deaf(self, now: Instant) -> bool:
        self._member.now = max(now, self._member.now)
        return self.is_closed

    def _expire(self) -> None:
        self._is_expired = True
        if self._member.is_connected:
            self._member.connection_lost()
        self._threads.session_expired()

    def _outcome(self) -> list[Effect]:
        self._member.procedures.run(self._member.now)
        effects = self._member.effects()
        if any(isinstance(effect, EndSession) for effect in effects):
            self.is_closed = True
            self._member.procedures.end()
        return effects
