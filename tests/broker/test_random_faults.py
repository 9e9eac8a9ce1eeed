"""Random produce requests and faults on three brokers, and what must hold whatever happens.

- The high watermark of a leader never falls within its epoch.
- Below their high watermarks, two replicas hold the same records where they hold them of the same epoch.
- What was acknowledged by all is in the log of every later leader, unless an election was unclean.
- When all is well again, all replicas are in sync and hold the same, and nobody waits any more.
"""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.broker.declined import Declined
from kelpie.broker.image import NO_LEADER
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from tests.broker.clients import ALL, LEADER, part, send_produce
from tests.broker.driver import Cluster, Sent

NODES = (1, 2, 3)
PARTITION = TopicPartition("orders", 0)
FAULTS = ("kill", "start", "stop", "lag", "catch_up", "isolate", "rejoin", "freeze", "thaw")
Event = tuple[str, int]

_faults = st.tuples(st.sampled_from(FAULTS), st.sampled_from(NODES))
_produces = st.tuples(st.sampled_from(["one", "all"]), st.sampled_from((0, *NODES)))
_passing = st.tuples(st.just("advance"), st.sampled_from([100, 600, 600, 4000, 12_000]))
_clean = st.one_of(_produces, _produces, _faults, _passing, st.tuples(st.just("prefer"), st.just(0)))
_any = st.one_of(_clean, _clean, _clean, st.tuples(st.just("unclean"), st.just(0)))


@dataclass
class World:
    """The cluster, and what its clients were promised."""

    cluster: Cluster
    parked: list[tuple[int, Sent, bytes]] = field(default_factory=list)
    promised: dict[int, bytes] = field(default_factory=dict)
    reached: dict[tuple[int, int], int] = field(default_factory=dict)
    unclean: bool = False
    count: int = 0

    def happen(self, event: Event) -> None:
        name, value = event
        fabric, now = self.cluster.fabric, self.cluster.now
        match name:
            case "one" | "all":
                self._produce(LEADER if name == "one" else ALL, value)
            case "advance":
                self.cluster.advance(value)
            case "prefer" | "unclean":
                self._elect(unclean=name == "unclean")
            case "catch_up":
                fabric.catch_up(value, None, now)
            case "lag":
                fabric.lag(value)
            case "freeze":
                fabric.freeze_metadata(value)
            case "thaw":
                fabric.thaw_metadata(value, now)
            case "kill" | "stop":
                getattr(fabric, name)(value, now)
                self.check()
                # Their connections are gone, and nobody will ever know.
                self.parked = [it for it in self.parked if it[0] != value]
            case _:
                getattr(fabric, name)(value, now)

    def _produce(self, acks: int, node: int) -> None:
        """To the leader (0), or to one who may believe that it leads."""
        node = node or self.cluster.leader(PARTITION)
        if node == NO_LEADER or not self.cluster.fabric.is_alive(node):
            return
        self.count += 1
        value = b"%d" % self.count
        sent = send_produce(self.cluster, PARTITION, value, acks=acks, node=node, timeout_ms=20_000)
        if acks == ALL:
            self.parked.append((node, sent, value))

    def _elect(self, *, unclean: bool) -> None:
        leaderless = self.cluster.leader(PARTITION) == NO_LEADER
        try:
            self.cluster.fabric.elect(PARTITION, self.cluster.now, unclean=unclean)
        except Declined:
            return
        self.unclean = self.unclean or (unclean and leaderless)

    def check(self) -> None:
        for waiting in self.parked.copy():
            _, sent, value = waiting
            if not sent.waits:
                self.parked.remove(waiting)
                found = part(sent.answer)
                if found.error_code == ErrorCode.NONE:
                    self.promised[found.base_offset] = value
        self._check_high_watermarks()
        self._check_agreement()
        self._check_promises()

    def _check_high_watermarks(self) -> None:
        for node in NODES:
            replica = self.cluster.replica(node, PARTITION)
            assert replica.log.start_offset <= replica.high_watermark <= replica.log.end_offset
            if replica.leads:
                key = (node, replica.leader_epoch)
                assert replica.high_watermark >= self.reached.get(key, 0), "the high watermark fell"
                self.reached[key] = replica.high_watermark

    def _contents(self, node: int, upto: int) -> dict[int, tuple[int, bytes | None]]:
        log = self.cluster.replica(node, PARTITION).log
        return {
            record.offset: (stored.leader_epoch, record.value)
            for stored in log.batches_from(log.start_offset)
            for record in stored.records()
            if record.offset < upto
        }

    def _check_agreement(self) -> None:
        for one, other in ((1, 2), (2, 3), (1, 3)):
            marks = [self.cluster.replica(node, PARTITION).high_watermark for node in (one, other)]
            ours, theirs = (self._contents(node, min(marks)) for node in (one, other))
            if self.unclean:
                ours = {at: it for at, it in ours.items() if theirs[at][0] == it[0]}
                theirs = {at: theirs[at] for at in ours}
            assert ours == theirs

    def _check_promises(self) -> None:
        leader = self.cluster.leader(PARTITION)
        if leader != NO_LEADER and not self.unclean:
            log = self._contents(leader, 1 << 60)
            for offset, value in self.promised.items():
                assert log[offset][1] == value, "a committed record is lost"

    def heal(self) -> None:
        for node in NODES:
            for name in ("thaw", "rejoin", "catch_up", "start"):
                self.happen((name, node))
        self.cluster.advance(30_000)
        if self.cluster.leader(PARTITION) == NO_LEADER:
            self._elect(unclean=True)
        self.check()
        assert not self.parked
        assert sorted(self.cluster.state(PARTITION).isr) == list(NODES)
        logs = [self._contents(node, 1 << 60) for node in NODES]
        assert logs[0] == logs[1] == logs[2]


def run(events: list[Event], persona: str, least: int) -> None:
    cluster = Cluster(persona=persona, settings={"replica.lag.time.max.ms": "10000"})
    cluster.create(config={"min.insync.replicas": str(least)})
    world = World(cluster)
    for event in events:
        world.happen(event)
        world.check()
    world.heal()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(_clean, min_size=10, max_size=60),
    st.sampled_from(["2.8", "3.9", "4.3"]),
    st.sampled_from([1, 2]),
)
def test_clean_elections_lose_nothing_that_was_committed(
    events: list[Event], persona: str, least: int
) -> None:
    """Kafka's promise for acks=all, under kills, stops, lags, partitions and stale metadata."""
    run(events, persona, least)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(_any, min_size=10, max_size=60), st.sampled_from(["2.8", "3.9", "4.3"]), st.sampled_from([1, 2])
)
def test_replicas_agree_even_after_unclean_elections(events: list[Event], persona: str, least: int) -> None:
    """Records may be lost then, but no two replicas may go on with different ones."""
    run(events, persona, least)
