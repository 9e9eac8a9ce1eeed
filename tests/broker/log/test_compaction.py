"""The cleaner: the last value of each key stays, at its offset."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.broker.log import Appended, Compacted, LogConfig, ReplicaLog
from kelpie.wire.records import Codec, read_all_records, write_message_set
from tests.broker.log.writing import T, append, contents, keyed, marker, new_log, read, refused, sent

COMPACT = LogConfig.of({"cleanup.policy": "compact", "delete.retention.ms": "1000"})


def compact(log: ReplicaLog, now: int = T, config: LogConfig = COMPACT) -> Compacted | None:
    log.roll(now)
    return log.compact(config, now, log.end_offset, force=True)


def write(log: ReplicaLog, *pairs: tuple[bytes, bytes | None], codec: Codec = Codec.NONE) -> None:
    append(log, sent(keyed(*pairs), codec=codec), config=COMPACT)


def test_only_the_last_value_of_a_key_stays_and_offsets_do_not_move() -> None:
    """Committed positions stay valid over holes."""
    log = new_log()
    write(log, (b"a", b"1"), (b"b", b"1"))
    write(log, (b"a", b"2"), codec=Codec.ZSTD)
    write(log, (b"a", b"3"), (b"c", b"1"), (b"a", b"4"), codec=Codec.GZIP)
    done = compact(log)
    assert done is not None
    assert done.end_offset == 6
    assert done.size_after < done.size_before
    assert contents(log) == [(1, b"b", b"1"), (4, b"c", b"1"), (5, b"a", b"4")]
    assert [record.offset for record in read_all_records(read(log, 2).data)] == [4, 5]
    assert read(log, 0).first_offset == 0, "a batch keeps its range"
    assert log.end_offset == 6


def test_the_active_segment_and_what_is_not_stable_are_left_alone() -> None:
    """A value may be replaced only by one that cannot be lost."""
    log = new_log()
    write(log, (b"a", b"1"))
    write(log, (b"a", b"2"))
    assert log.compact(COMPACT, T, 2, force=True) is not None
    assert len(contents(log)) == 2, "all of it is active"
    log.roll(T)
    assert log.compact(COMPACT, T, 1, force=True) is not None
    assert len(contents(log)) == 2, "the high watermark is in the middle of the segment"
    append(log, sent(1, producer=(1, 0, 0), transactional=True), config=COMPACT)
    write(log, (b"a", b"3"))
    log.roll(T)
    log.compact(COMPACT, T, 4, force=True)
    assert [offset for offset, _, _ in contents(log)] == [1, 2, 3], "up to the open transaction's segment"


def test_it_runs_when_enough_is_dirty_or_too_long_dirty() -> None:
    """min.cleanable.dirty.ratio, max.compaction.lag.ms, min.compaction.lag.ms."""
    log = new_log()
    for n in range(4):
        write(log, (b"k%d" % n, b"v"))
    log.roll(T)
    assert log.compact(LogConfig(), T, 4) is None, "not a compacted topic"
    assert (
        log.compact(LogConfig.of({"cleanup.policy": "compact", "min.compaction.lag.ms": "9"}), T + 8, 4)
        is None
    )
    assert log.compact(COMPACT, T, 4) is not None
    write(log, (b"k1", b"w"))
    log.roll(T)
    assert log.compact(COMPACT, T, 5) is None, "a fifth is dirty"
    impatient = LogConfig.of({"cleanup.policy": "compact", "max.compaction.lag.ms": "100"})
    assert log.compact(impatient, T + 100, 5) is None
    assert log.compact(impatient, T + 101, 5) is not None


def test_a_tombstone_stays_for_its_time_after_the_first_pass() -> None:
    """A consumer that is not too slow must learn that the key is gone (KIP-534)."""
    log = new_log()
    write(log, (b"a", b"1"), (b"b", b"1"))
    write(log, (b"a", None))
    write(log, (b"z", b"1"))
    compact(log, T)
    assert contents(log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"z", b"1")]
    compact(log, T + 999)
    assert (2, b"a", None) in contents(log)
    compact(log, T + 1000)
    assert contents(log) == [(1, b"b", b"1"), (3, b"z", b"1")]


def test_the_last_batch_of_a_producer_stays_as_a_header() -> None:
    """Or a follower that rebuilds its state would take a retry for new."""
    log = new_log()
    append(log, sent(keyed((b"a", b"1")), producer=(1, 0, 0)), config=COMPACT)
    last = sent(keyed((b"a", b"2")), producer=(1, 0, 1))
    append(log, last, config=COMPACT)
    write(log, (b"a", b"3"))
    compact(log)
    assert contents(log) == [(2, b"a", b"3")]
    assert [(batch.base_offset, batch.header.codec) for batch in log.batches_from(0)] == [(1, 0), (2, 0)]
    follower = new_log()
    follower.append_as_follower(log.batches_from(0), now=T)
    assert append(follower, last, config=COMPACT).duplicate
    log.truncate_to(2)
    assert append(log, last, config=COMPACT).duplicate


def test_the_last_batch_of_a_pass_stays_so_that_the_end_is_known() -> None:
    """A follower that fetches a log of nothing but holes would never come to its end."""
    log = new_log()
    write(log, (b"a", b"1"))
    write(log, (b"a", None))
    compact(log, T)
    compact(log, T + 1000)
    assert contents(log) == []
    assert [batch.last_offset for batch in log.batches_from(0)] == [1]
    follower = new_log()
    follower.append_as_follower(log.batches_from(0), now=T)
    assert follower.end_offset == 2


def test_aborted_data_goes_at_once_and_its_marker_later() -> None:
    """A marker without its data means nothing, but a reader that is amidst must still see it."""
    log = new_log()
    write(log, (b"a", b"1"))
    append(
        log, sent(keyed((b"a", b"2"), (b"b", b"2")), producer=(1, 0, 0), transactional=True), config=COMPACT
    )
    marker(log, 1, committed=False)
    append(log, sent(keyed((b"c", b"1")), producer=(1, 0, 2)), config=COMPACT)
    write(log, (b"z", b"1"))
    compact(log, T)
    kept = [(0, b"a", b"1"), (4, b"c", b"1"), (5, b"z", b"1")]
    assert contents(log) == kept
    assert log.aborted_between(0, 6) == [(1, 1)], "the first pass keeps marker and index"
    compact(log, T + 10)
    assert any(batch.header.is_control for batch in log.batches_from(0))
    assert log.aborted_between(0, 6) == []
    compact(log, T + 1009)
    assert any(batch.header.is_control for batch in log.batches_from(0))
    compact(log, T + 1010)
    assert not any(batch.header.is_control for batch in log.batches_from(0))
    assert contents(log) == kept


def test_a_transaction_that_was_aborted_in_the_active_segment_stays_in_the_index() -> None:
    """The rest of its data lies where the cleaner has not been, and a consumer must still skip it."""
    log = new_log()
    append(log, sent(keyed((b"a", b"1")), producer=(1, 0, 0), transactional=True), config=COMPACT)
    write(log, (b"b", b"1"))
    log.roll(T)
    append(log, sent(keyed((b"a", b"2")), producer=(1, 0, 1), transactional=True), config=COMPACT)
    marker(log, 1, committed=False)
    log.compact(COMPACT, T, 4, force=True)
    assert [offset for offset, _, _ in contents(log)] == [1, 2]
    assert log.aborted_between(2, 4) == [(1, 0)]


def test_a_producer_that_aborted_before_the_last_pass_is_believed_again() -> None:
    """Its next transaction replaces values, though the aborted one is still in the index."""
    log = new_log()
    write(log, (b"a", b"1"))
    append(log, sent(keyed((b"a", b"2")), producer=(1, 0, 0), transactional=True), config=COMPACT)
    marker(log, 1, committed=False)
    compact(log)
    assert log.aborted_between(0, 3) == [(1, 1)]
    append(log, sent(keyed((b"a", b"3")), producer=(1, 0, 1), transactional=True), config=COMPACT)
    marker(log, 1, committed=True)
    compact(log)
    assert contents(log) == [(3, b"a", b"3")]


def test_a_committed_marker_stays_as_long_as_its_data() -> None:
    """Control batches have keys that look like others; they are never compared with records."""
    log = new_log()
    append(log, sent(keyed((b"a", b"1")), producer=(1, 0, 0), transactional=True), config=COMPACT)
    marker(log, 1, committed=True)
    write(log, (b"\x00\x00\x00\x01", b"looks like a commit marker"))
    for later in (0, 2000, 4000):
        compact(log, T + later)
        assert any(batch.header.is_control for batch in log.batches_from(0))
    write(log, (b"a", b"2"))
    append(log, sent(keyed((b"q", b"1")), producer=(1, 0, 1)), config=COMPACT)
    for later in (6000, 8000, 10_000):
        compact(log, T + later)
    assert not any(batch.header.is_control for batch in log.batches_from(0))
    assert len(contents(log)) == 3


def test_of_the_marker_that_holds_a_producers_epoch_the_header_stays() -> None:
    """It is the producer's last word, and bears the epoch by which a zombie is fenced."""
    log = new_log()
    append(log, sent(keyed((b"a", b"1")), producer=(1, 0, 0), transactional=True), config=COMPACT)
    marker(log, 1, committed=True, epoch=1, version=2)
    write(log, (b"a", b"2"))
    for later in (0, 2000, 4000):
        compact(log, T + later)
    assert contents(log) == [(2, b"a", b"2")]
    headers = [batch.header for batch in log.batches_from(0)]
    assert [(header.last_offset, header.is_control, header.producer_epoch) for header in headers] == [
        (1, True, 1),
        (2, False, -1),
    ]
    assert refused(log, sent(keyed((b"a", b"3")), producer=(1, 0, 1), transactional=True), COMPACT)


def test_cleaned_segments_are_joined() -> None:
    """Or a compacted topic would end as thousands of crumbs."""
    log = new_log()
    config = LogConfig.of({"cleanup.policy": "compact", "segment.bytes": "300"})
    for n in range(20):
        append(log, sent(keyed((b"same", b"%d" % n))), config=config)
    before = len(log.segments)
    log.roll(T)
    log.compact(config, T, 20, force=True)
    log.compact(config, T, 20, force=True)
    assert len(log.segments) < before / 2
    assert contents(log) == [(19, b"same", b"19")]


def test_a_log_of_magic_0_is_compacted_too() -> None:
    """The offsets topic of Kafka 0.9; its tombstones go by the age of the segment."""
    config = LogConfig.of({"cleanup.policy": "compact", "delete.retention.ms": "100"}, message_format=0)
    log = new_log()
    wrapped = write_message_set(keyed((b"a", b"1"), (b"b", b"1"), (b"c", b"1")), magic=0, codec=Codec.GZIP)
    plain = write_message_set(keyed((b"a", b"2"), (b"b", None)), magic=0)
    for data in (wrapped, plain):
        append(log, data, config=config, produce_version=0)
    log.roll(T)
    log.compact(config, T, 5, force=True)
    assert contents(log) == [(2, b"c", b"1"), (3, b"a", b"2"), (4, b"b", None)]
    append(log, plain, config=config, produce_version=0, now=T + 101)
    log.roll(T + 101)
    log.compact(config, T + 101, 7, force=True)
    assert contents(log) == [(2, b"c", b"1"), (5, b"a", b"2"), (6, b"b", None)]


def test_keyless_records_of_a_topic_that_was_not_compacted_before_are_dropped() -> None:
    """The policy may change when they are there already."""
    log = new_log()
    append(log, sent(keyed((None, b"1"), (b"a", b"1"))))
    append(log, sent(keyed((None, b"2"))))
    compact(log)
    assert contents(log) == [(1, b"a", b"1")]
    assert refused(log, sent(keyed((None, b"1"))), COMPACT)


_WRITES = st.lists(
    st.tuples(
        st.sampled_from(["plain", "plain", "transaction", "commit", "abort", "roll", "compact"]),
        st.integers(1, 3),
        st.lists(
            st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]), st.none() | st.binary(max_size=4)),
            min_size=1,
            max_size=4,
        ),
        st.sampled_from(Codec),
    ),
    max_size=30,
)


@settings(max_examples=400, deadline=None)
@given(_WRITES)
def test_compaction_keeps_exactly_the_last_committed_value_of_each_key(
    writes: list[tuple[str, int, list[tuple[bytes, bytes | None]], Codec]],
) -> None:
    """After any history, whatever passes have been made before, and with all offsets in order."""
    log = new_log()
    records: list[tuple[int, bytes, bytes | None]] = []
    pending: dict[int, list[tuple[int, bytes, bytes | None]]] = {}
    sequences: dict[int, int] = {}
    for kind, producer, pairs, codec in writes:
        end = log.end_offset
        placed = [(end + index, key, value) for index, (key, value) in enumerate(pairs)]
        if kind == "plain":
            append(log, sent(keyed(*pairs), codec=codec), config=COMPACT)
            records += placed
        elif kind == "transaction":
            sequence = sequences.get(producer, 0)
            data = sent(keyed(*pairs), codec=codec, producer=(producer, 0, sequence), transactional=True)
            append(log, data, config=COMPACT)
            sequences[producer] = sequence + len(pairs)
            pending.setdefault(producer, []).extend(placed)
        elif kind in ("commit", "abort"):
            assert isinstance(marker(log, producer, committed=kind == "commit"), Appended)
            decided = pending.pop(producer, [])
            if kind == "commit":
                records += decided
        elif kind == "roll":
            log.roll(T)
        else:
            log.compact(COMPACT, T, log.end_offset, force=True)
    for producer in list(pending):
        marker(log, producer, committed=True)
        records += pending.pop(producer)
    append(log, sent(keyed((b"end", b"1"))), config=COMPACT)
    records.append((log.end_offset - 1, b"end", b"1"))
    end = log.end_offset
    done = compact(log)
    assert done is not None
    assert done.end_offset == log.end_offset == end
    last: dict[bytes, tuple[int, bytes, bytes | None]] = {}
    for record in sorted(records):
        last[record[1]] = record
    assert contents(log) == sorted(last.values())
    offsets = [(batch.base_offset, batch.last_offset) for batch in log.batches_from(0)]
    assert all(first <= last_ for first, last_ in offsets)
    assert all(one[1] < other[0] for one, other in pairwise(offsets))
    for offset in range(end):
        batches = read(log, offset).batches
        assert batches[0].last_offset >= offset
