"""Leader epochs: replicas that went different ways find the point where they parted (KIP-101, KIP-279)."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.broker.log import AppendRefusal, LogConfig, LogEpochEnd, ReplicaLog
from kelpie.errors import ErrorCode
from tests.broker.log.writing import T, append, contents, marker, new_log, sent


def log_with_epochs(*epochs: int) -> ReplicaLog:
    """One record for each."""
    log = ReplicaLog(new_log().partition)
    for epoch in epochs:
        append(log, epoch=epoch)
    return log


def test_an_epoch_ends_where_the_next_one_begins() -> None:
    """What OffsetForLeaderEpoch answers."""
    log = log_with_epochs(1, 1, 3, 3, 3, 7)
    assert log.end_offset_for_epoch(1) == LogEpochEnd(1, 2)
    assert log.end_offset_for_epoch(3) == LogEpochEnd(3, 5)
    assert log.end_offset_for_epoch(7) == LogEpochEnd(7, 6), "the last one ends with the log"
    assert log.end_offset_for_epoch(5) == LogEpochEnd(3, 5), "of one it does not know, the one before"
    assert log.end_offset_for_epoch(0) == LogEpochEnd(0, 0), "older than all: where the log begins"
    assert log.end_offset_for_epoch(8) == (-1, -1)
    assert log.end_offset_for_epoch(-1) == (-1, -1)
    assert log.epochs == [(1, 0), (3, 2), (7, 5)]
    assert ReplicaLog(log.partition).epochs == []


def test_a_leader_that_wrote_nothing_still_has_an_epoch() -> None:
    """Its followers ask about it, and must be told where it began."""
    log = log_with_epochs(1, 1)
    log.begin_epoch(4)
    assert log.last_epoch == 4
    assert log.end_offset_for_epoch(2) == LogEpochEnd(1, 2)
    assert not log.truncate_to(2), "nothing is there to be cut"
    assert log.last_epoch == 1, "but the epoch that was never written is gone"


def test_truncation_and_deletion_cut_the_epochs_at_both_ends() -> None:
    """The cache must not speak of offsets that are not there."""
    log = log_with_epochs(1, 1, 3, 3, 3, 7)
    log.truncate_to(5)
    assert log.epochs == [(1, 0), (3, 2)]
    log.delete_before(3)
    assert log.epochs == [(3, 3)]
    assert log.end_offset_for_epoch(1) == LogEpochEnd(1, 3)
    log.reset_to(9)
    assert log.epochs == []
    assert (log.start_offset, log.end_offset) == (9, 9)


def test_truncation_takes_whole_batches() -> None:
    """The rest of a batch cannot be fetched without its beginning."""
    log = new_log()
    append(log, sent(4))
    append(log, sent(4))
    assert log.truncate_to(6)
    assert log.end_offset == 4
    assert log.truncate_to(0)
    assert (log.end_offset, log.size) == (0, 0)


def test_truncation_below_the_start_begins_anew() -> None:
    """The leader lost more than this replica has deleted."""
    log = new_log()
    for _ in range(3):
        append(log, config=LogConfig(segment_bytes=len(sent())))
    log.delete_before(2)
    log.retain(LogConfig(), T, 3)
    assert log.truncate_to(1)
    assert (log.start_offset, log.end_offset, log.size) == (1, 1, 0)


def test_a_fetch_behind_the_common_past_is_told_where_it_parted() -> None:
    """KIP-595: the leader compares the follower's last epoch with its own, at every fetch."""
    leader = log_with_epochs(1, 1, 3, 3)
    assert leader.divergence(4, 3) is None
    assert leader.divergence(2, 1) is None
    assert leader.divergence(3, 1) == LogEpochEnd(1, 2)
    assert leader.divergence(3, 2) == LogEpochEnd(1, 2)
    refusal = leader.divergence(5, 9)
    assert isinstance(refusal, AppendRefusal)
    assert refusal.error_code is ErrorCode.OFFSET_OUT_OF_RANGE


def align(follower: ReplicaLog, leader: ReplicaLog) -> None:
    """As a follower does before it fetches."""
    for _ in range(100):
        if follower.last_epoch == -1:
            return
        found = leader.end_offset_for_epoch(follower.last_epoch)
        if follower.truncate_to_epoch(*found):
            return
    raise AssertionError("they never agree")


def align_by_fetching(follower: ReplicaLog, leader: ReplicaLog) -> None:
    """As a follower does with KIP-595, by the leader's answers to its fetches."""
    for _ in range(100):
        if follower.last_epoch == -1:
            return
        found = leader.divergence(follower.end_offset, follower.last_epoch)
        if found is None:
            return
        assert isinstance(found, LogEpochEnd)
        follower.truncate_to_epoch(*found)
    raise AssertionError("they never agree")


def test_a_follower_steps_down_epoch_by_epoch() -> None:
    """KIP-279: the leader's epoch may be unknown here, and what lies before may differ as well."""
    leader = log_with_epochs(1, 1, 3, 3, 3, 6)
    follower = log_with_epochs(1, 1, 1, 4)
    assert not follower.truncate_to_epoch(*leader.end_offset_for_epoch(follower.last_epoch))
    assert follower.end_offset == 3
    assert follower.truncate_to_epoch(*leader.end_offset_for_epoch(follower.last_epoch))
    assert follower.end_offset == 2


def test_a_leader_without_epochs_leaves_only_the_high_watermark_to_go_by() -> None:
    """Before Kafka 0.11, and while formats change, followers cut at the high watermark."""
    follower = log_with_epochs(1, 1, 4)
    assert follower.truncate_to_epoch(-1, -1)
    assert follower.end_offset == 3
    assert follower.truncate_to_epoch(-1, -1, high_watermark=2)
    assert follower.end_offset == 2


@dataclass
class Cluster:
    """Three replicas that follow whoever was elected; they notice when they next fetch."""

    logs: tuple[ReplicaLog, ...]
    by_fetching: bool
    leader: int = 0
    epoch: int = 0
    aligned: set[int] = field(default_factory=set)

    def elect(self, leader: int) -> None:
        self.leader, self.epoch = leader, self.epoch + 1
        self.logs[leader].begin_epoch(self.epoch)
        self.aligned = {leader}

    def pull(self, follower: int, batches: int, config: LogConfig) -> None:
        if follower == self.leader:
            return
        log, leader = self.logs[follower], self.logs[self.leader]
        if follower not in self.aligned:
            (align_by_fetching if self.by_fetching else align)(log, leader)
            self.aligned.add(follower)
        log.append_as_follower(
            leader.batches_from(log.end_offset)[:batches], now=T, config=config, leader_epoch=self.epoch
        )


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "append",
                "append",
                "idempotent",
                "transaction",
                "marker",
                "pull",
                "pull",
                "pull",
                "elect",
                "roll",
            ]
        ),
        st.integers(0, 2),
        st.integers(0, 3),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(_STEPS, st.booleans())
def test_replicas_end_identical_after_any_elections(
    steps: list[tuple[str, int, int]], by_fetching: bool
) -> None:
    """Whoever led, also after unclean elections: the others become copies, with the same producers."""
    partition = new_log().partition
    cluster = Cluster(tuple(ReplicaLog(partition) for _ in range(3)), by_fetching)
    config = LogConfig(segment_bytes=700)
    cluster.elect(0)
    for kind, which, number in steps:
        leader = cluster.logs[cluster.leader]
        known = {entry.producer_id: entry for entry in leader.producers()}
        if kind == "append":
            append(leader, sent(number + 1, timestamp=T + number), epoch=cluster.epoch, config=config)
        elif kind in ("idempotent", "transaction"):
            producer_id = number + (10 if kind == "transaction" else 1)
            sequence = known[producer_id].last_sequence + 1 if producer_id in known else 0
            data = sent(2, producer=(producer_id, 0, sequence), transactional=kind == "transaction")
            append(leader, data, epoch=cluster.epoch, config=config)
        elif kind == "marker":
            marker(leader, 10 + number, committed=number % 2 == 0)
        elif kind == "pull":
            cluster.pull(which, number, config)
        elif kind == "elect":
            cluster.elect(which)
        else:
            leader.roll(T)
    cluster.elect(cluster.leader)
    one = cluster.logs[cluster.leader]
    for which, other in enumerate(cluster.logs):
        cluster.pull(which, 10_000, config)
        assert one.end_offset == other.end_offset
        assert contents(one) == contents(other)
        assert [batch.data for batch in one.batches_from(0)] == [
            batch.data for batch in other.batches_from(0)
        ]
        begun, also_begun = (
            [epoch for epoch in log.epochs if epoch[1] < log.end_offset] for log in (one, other)
        )
        assert begun == also_begun
        for offset in range(one.end_offset):
            assert one.last_stable_offset(offset) == other.last_stable_offset(offset)
        assert sorted(one.producers()) == sorted(other.producers())
        assert one.aborted_between(0, 10_000) == other.aborted_between(0, 10_000)
