"""The last stable offset, and what was aborted."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.broker.log import Appended, LogConfig
from tests.broker.log.writing import T, append, marker, new_log, sent


def test_an_open_transaction_holds_the_last_stable_offset_back() -> None:
    """A reader of committed data must not pass what may still be aborted."""
    log = new_log()
    append(log, sent(3))
    append(log, sent(2, producer=(1, 0, 0), transactional=True))
    append(log, sent(1))
    assert log.first_open_transaction == 3
    assert log.last_stable_offset(6) == 3
    assert log.last_stable_offset(2) == 2
    marker(log, 1, committed=True)
    assert log.first_open_transaction is None
    assert log.last_stable_offset(7) == 7


def test_a_marker_above_the_high_watermark_does_not_count_yet() -> None:
    """It may be lost with its leader; then the transaction is open again."""
    log = new_log()
    append(log, sent(2, producer=(1, 0, 0), transactional=True))
    marker(log, 1, committed=True)
    assert log.last_stable_offset(2) == 0
    assert log.last_stable_offset(3) == 3
    log.truncate_to(2)
    assert log.first_open_transaction == 0
    assert log.last_stable_offset(2) == 0


def test_aborted_transactions_are_listed_where_a_fetch_overlaps_them() -> None:
    """The consumer filters by them; one too few shows it aborted data."""
    log = new_log()
    append(log, sent(2, producer=(1, 0, 0), transactional=True))  # 0, 1
    append(log, sent(2, producer=(2, 0, 0), transactional=True))  # 2, 3
    marker(log, 1, committed=False)  # 4
    append(log, sent(1))  # 5
    marker(log, 2, committed=False)  # 6
    assert log.aborted_between(0, 7) == [(1, 0), (2, 2)]
    assert log.aborted_between(0, 2) == [(1, 0)]
    assert log.aborted_between(0, 4) == [(1, 0), (2, 2)], "the second overlaps, though it ended later"
    assert log.aborted_between(5, 7) == [(2, 2)]
    assert log.aborted_between(7, 9) == []


def test_a_marker_without_data_ends_nothing() -> None:
    """A producer aborts on all partitions it had announced, written to or not."""
    log = new_log()
    marker(log, 1, committed=False)
    assert log.aborted_between(0, 9) == []
    assert log.last_stable_offset(1) == 1
    assert [entry.producer_id for entry in log.producers()] == [1]


def test_the_last_stable_offset_is_never_below_the_start_of_the_log() -> None:
    """Records of an open transaction may be deleted; a consumer sent there would be refused."""
    log = new_log()
    append(log, sent(4, producer=(1, 0, 0), transactional=True))
    log.delete_before(2)
    assert log.last_stable_offset(4) == 2


@dataclass
class Model:
    """Events by offset, looked through from the beginning each time."""

    events: list[tuple[str, int, int, int]] = field(default_factory=list)  # kind, producer, first, last

    def transactions(self) -> list[tuple[int, int, int | None, bool]]:
        """Producer, first offset, offset of the marker, aborted."""
        begun: dict[int, int] = {}
        found = []
        for kind, producer, first, last in self.events:
            if kind == "data":
                begun.setdefault(producer, first)
            elif kind in ("commit", "abort") and producer in begun:
                found.append((producer, begun.pop(producer), last, kind == "abort"))
        return found + [(producer, first, None, False) for producer, first in begun.items()]

    def stable(self, high_watermark: int) -> int:
        unstable = [first for _, first, end, _ in self.transactions() if end is None or end >= high_watermark]
        return min([high_watermark, *unstable])

    def aborted(self, first: int, last: int) -> list[tuple[int, int]]:
        return [
            (producer, begin)
            for producer, begin, end, aborted in self.transactions()
            if aborted and end is not None and end >= first and begin < last
        ]


_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["data", "data", "data", "plain", "commit", "abort", "roll", "truncate"]),
        st.integers(1, 4),
        st.integers(1, 3),
        st.floats(0, 1),
    ),
    max_size=40,
)


@settings(max_examples=200, deadline=None)
@given(_EVENTS, st.data())
def test_last_stable_offset_and_aborted_list_agree_with_a_plain_model(
    events: list[tuple[str, int, int, float]], data: st.DataObject
) -> None:
    """Indexes, snapshots and truncation must not tell another story than the log itself."""
    log, model = new_log(), Model()
    sequences: dict[int, int] = {}
    for kind, producer, count, share in events:
        end = log.end_offset
        if kind == "data":
            sequence = sequences.get(producer, 0)
            appended = append(log, sent(count, producer=(producer, 0, sequence), transactional=True))
            assert not appended.duplicate
            sequences[producer] = sequence + count
            model.events.append(("data", producer, end, end + count - 1))
        elif kind == "plain":
            append(log, sent(count))
            model.events.append(("plain", 0, end, end + count - 1))
        elif kind in ("commit", "abort"):
            assert isinstance(marker(log, producer, committed=kind == "commit"), Appended)
            model.events.append((kind, producer, end, end))
        elif kind == "roll":
            log.roll(T)
        else:
            log.truncate_to(int(end * share))
            model.events = [event for event in model.events if event[3] < log.end_offset]
            sequences = {entry.producer_id: entry.last_sequence + 1 for entry in log.producers()}
    high_watermark = data.draw(st.integers(0, log.end_offset))
    assert log.last_stable_offset(high_watermark) == model.stable(high_watermark)
    first = data.draw(st.integers(0, log.end_offset))
    last = data.draw(st.integers(first, log.end_offset + 1))
    assert log.aborted_between(first, last) == model.aborted(first, last)
    open_now = [first for _, first, end, _ in model.transactions() if end is None]
    assert log.first_open_transaction == min(open_now, default=None)
    follower = new_log()
    follower.append_as_follower(log.batches_from(0), now=T, config=LogConfig(segment_bytes=500))
    assert follower.last_stable_offset(high_watermark) == log.last_stable_offset(high_watermark)
    assert follower.aborted_between(first, last) == log.aborted_between(first, last)
    assert {entry.producer_id: entry for entry in follower.producers()} == {
        entry.producer_id: entry for entry in log.producers()
    }


def test_many_ended_transactions_do_not_pile_up_before_the_high_watermark() -> None:
    """A partition of the offsets topic may see thousands of transactions a minute."""
    log = new_log()
    for n in range(1500):
        append(log, sent(1, producer=(1, 0, n), transactional=True))
        marker(log, 1, committed=True)
    assert log.last_stable_offset(2900) == 2900
    assert log.last_stable_offset(2901) == 2900
    assert log.last_stable_offset(3000) == 3000
