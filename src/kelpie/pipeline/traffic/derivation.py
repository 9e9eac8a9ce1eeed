"""Traffic by group where no broker counts it: committed offsets, and the size of the log between them.

Two surveys tell by how many bytes and offsets a log has grown. So a log is a *curve*: bytes over offsets,
with a point for each survey. A group that went from one offset to another has read the bytes between these
two points of the curve; within a step from survey to survey, all offsets count the same. What was in the log
before the first survey is one step, too: its size, from its first offset to its end.

A step tells its bytes if the leader is the same broker, and

- the log begins where it began: then its size has grown by what was appended;
- or retention has removed segments: their bytes are known if the curve knows them, and what was appended is
  the difference. DeleteRecords moves the start of a log, too, and leaves the bytes until a whole segment is
  free. Each of the two explanations gives a number of bytes per offset. It counts if only one of them is
  between half and twice that of the other steps of the log, or if both are nearly equal.

All other steps are unknown: compacted and tiered topics, another leader, a log that has become smaller. Bytes
of a group that read some of an unknown step are null.

A group whose offset goes back has read nothing by that, and one whose offset was set by an administrator (it
has no leader epoch any more) has not either. A log whose end or start goes back is another log.
"""

import statistics
from bisect import bisect_right

import numpy as np
import pyarrow as pa

from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.traffic.growth import TOLD, Flags, Numbers, codes, combined, named

COLUMNS = (
    *("at", "topic", "partition", "group", "broker", "offset", "start_offset", "size", "is_whole"),
    "leader_epoch",
)
NAMES = ("topic", "group", "broker")
_PLAUSIBLE, _NEARLY = 2.0, 1.02
_UNKNOWN = -1
_MOMENT = TABLES["offset_sample"].schema.field("at").type
Fractions = np.ndarray[tuple[int], np.dtype[np.float64]]


def derived(samples: pa.Table) -> pa.Table:
    """Rows of attributed_traffic, without `how`. `samples`: COLUMNS of offset_sample, and TOLD."""
    samples = samples.combine_chunks()
    topic, topics = codes(samples["topic"])
    partition = samples["partition"].to_numpy().astype(np.int64)
    place = combined((topic, partition), (max(1, len(topics)), int(partition.max(initial=0)) + 1))
    is_log = samples["group"].is_null().to_numpy(zero_copy_only=False)
    logs = _Logs(samples, place, np.flatnonzero(is_log))
    if not len(logs.at):
        return _rows(samples, logs, _Moves.none())
    moves = _moves(samples, place, np.flatnonzero(~is_log), logs)
    return _rows(samples, logs, moves)


def last_of_each(samples: pa.Table) -> pa.Table:
    """The last sample of each log, and of each group in it."""
    samples = samples.combine_chunks()
    keys = [codes(samples[name])[0] for name in ("topic", "group")]
    keys.append(samples["partition"].to_numpy().astype(np.int64))
    order = np.lexsort((_micros(samples), *keys))
    is_last = np.ones(len(order), bool)
    is_last[:-1] = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
    return samples.take(pa.array(np.sort(order[is_last])))


def _micros(samples: pa.Table) -> Numbers:
    micros: Numbers = samples["at"].cast(pa.int64()).to_numpy()
    return micros


def _numbers(samples: pa.Table, name: str, rows: Numbers) -> Numbers:
    """A column of whole numbers; −1 stands for null."""
    values: Numbers = samples[name].fill_null(_UNKNOWN).to_numpy()[rows].astype(np.int64)
    return values


class _Logs:
    """All samples of logs, in order of place and time, and the curve of each log."""

    def __init__(self, samples: pa.Table, place: Numbers, rows: Numbers) -> None:
        at = _micros(samples)
        rows = rows[np.lexsort((at[rows], place[rows]))]
        keep = np.ones(len(rows), bool)
        keep[:-1] = (place[rows[1:]] != place[rows[:-1]]) | (at[rows[1:]] != at[rows[:-1]])
        rows = rows[keep]
        self.row, self.place, self.at = rows, place[rows], at[rows]
        self.end, self.start = (_numbers(samples, name, rows) for name in ("offset", "start_offset"))
        self._size = _numbers(samples, "size", rows)
        broker = codes(samples["broker"])[0][rows]
        whole = samples["is_whole"].fill_null(False).to_numpy(zero_copy_only=False)[rows].astype(bool)
        self._tells = whole & (self._size >= 0)
        begins = np.ones(len(rows), bool)
        begins[1:] = (
            (self.place[1:] != self.place[:-1])
            | (self.end[1:] < self.end[:-1])
            | (self.start[1:] < self.start[:-1])
        )
        self.log: Numbers = np.cumsum(begins) - 1
        """Which log: one that was made again is another one."""
        self._firsts = np.flatnonzero(begins)
        self._comparable = np.zeros(len(rows), bool)
        self._comparable[1:] = (
            ~begins[1:] & self._tells[1:] & self._tells[:-1] & (broker[1:] == broker[:-1]) & (broker[1:] >= 0)
        )
        self._draw(self._appended())

    def _appended(self) -> Numbers:
        """The bytes of each step; −1 if they are not known."""
        grew, larger = np.diff(self.end, prepend=0), np.diff(self._size, prepend=0)
        moved = np.diff(self.start, prepend=0) != 0
        bytes_: Numbers = np.where(self._comparable & ~moved & (larger >= 0), larger, _UNKNOWN)
        bytes_ = np.where((bytes_ == _UNKNOWN) & (grew == 0), 0, bytes_)
        bytes_[self._firsts] = _UNKNOWN
        lasts = np.append(self._firsts[1:], len(self.log))[: len(self._firsts)]
        self._usual = np.full(len(self._firsts), np.nan)
        plain = (bytes_ > 0) & (grew > 0) & ~moved
        for number, (first, last) in enumerate(zip(self._firsts.tolist(), lasts.tolist(), strict=True)):
            known = np.flatnonzero(plain[first:last]) + first
            if len(known):
                self._usual[number] = statistics.median((bytes_[known] / grew[known]).tolist())
            if (moved & self._comparable)[first:last].any():
                bytes_[first:last] = self._with_removals(first, last, bytes_[first:last], number)
        return bytes_

    def _with_removals(self, first: int, last: int, bytes_: Numbers, number: int) -> Numbers:
        """The bytes of the steps of one log; also of those in which its start has moved."""
        end, start, size = (each[first:last].tolist() for each in (self.end, self.start, self._size))
        comparable, steps = self._comparable[first:last].tolist(), bytes_.tolist()
        sums, unknown = [0.0], [0]
        for place in range(1, len(steps)):
            grew = end[place] - end[place - 1]
            if comparable[place] and steps[place] == _UNKNOWN and start[place] != start[place - 1]:
                larger = size[place] - size[place - 1]
                kept = _kept(start[place], end, sums, unknown)
                explained = [larger] if kept is None else [larger, size[place] - kept]
                steps[place] = self._plausible(explained, grew, number) if kept is not None else _UNKNOWN
            sums.append(sums[-1] + max(steps[place], 0))
            unknown.append(unknown[-1] + (steps[place] == _UNKNOWN))
        return np.array(steps, np.int64)

    def _plausible(self, explained: list[float], grew: int, number: int) -> int:
        usual = self._usual[number]
        chosen = [each for each in explained if usual / _PLAUSIBLE <= each / grew <= usual * _PLAUSIBLE]
        if not chosen or max(chosen) > _NEARLY * min(chosen):
            return _UNKNOWN
        return round(chosen[-1])

    def _draw(self, appended: Numbers) -> None:
        """Points of curves: the start of each log, then its end at each survey."""
        count = len(self.log)
        at = np.arange(count) + self.log + 1
        """Each log has one point more than surveys."""
        firsts, heads = self._firsts, at[self._firsts] - 1
        total = count + len(firsts)
        offset, step, unknown = (np.zeros(total, np.int64) for _ in range(3))
        self._point_log = np.zeros(total, np.int64)
        self._point_log[at], self._point_log[heads] = self.log, self.log[firsts]
        self._origin = self.start[firsts]
        offset[at], offset[heads] = self.end - self._origin[self.log], 0
        before, held = self.end[firsts] - self._origin, self._size[firsts]
        rate = held / np.maximum(before, 1)
        is_usual = (rate >= self._usual / _PLAUSIBLE) & (rate <= self._usual * _PLAUSIBLE)
        known = self._tells[firsts] & ((self._origin == 0) | is_usual)
        appended = appended.copy()
        appended[firsts] = np.where(known, held, np.where(before == 0, 0, _UNKNOWN))
        step[at], unknown[at] = np.maximum(appended, 0), appended == _UNKNOWN
        self._offset, self._bytes, self._unknown = offset, np.cumsum(step), np.cumsum(unknown)
        self._scale = int(offset.max(initial=0)) + 2
        self._key = self._point_log * self._scale + offset

    def look(self, place: Numbers, at: Numbers) -> tuple[Numbers, Flags]:
        """The survey of a log at a time, and whether there is one."""
        scale = int(max(self.at.max(initial=0), at.max(initial=0))) + 1
        order = np.stack([self.place, self.at])
        first = int(min(self.at.min(), at.min(initial=self.at[0])))
        span = scale - first
        key = order[0] * span + (order[1] - first)
        wanted = place * span + (at - first)
        found = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        return found, key[found] == wanted

    def bytes_between(self, log: Numbers, first: Numbers, last: Numbers) -> tuple[Fractions, Flags]:
        """Bytes from an offset up to another one, and whether they are known."""
        (low, since, _), (_, until, high) = (self._at(log, each) for each in (first, last))
        inside = (first >= self._origin[log]) & (high < len(self._key))
        high = np.minimum(high, len(self._key) - 1)
        inside &= self._point_log[high] == log
        return until - since, inside & (self._unknown[high] == self._unknown[low])

    def _at(self, log: Numbers, offset: Numbers) -> tuple[Numbers, Fractions, Numbers]:
        """The last point up to an offset, the bytes up to it, and the first point from it on."""
        wanted = log * self._scale + np.clip(offset - self._origin[log], 0, self._scale - 1)
        low = np.maximum(np.searchsorted(self._key, wanted, "right") - 1, 0)
        high = np.searchsorted(self._key, wanted, "left")
        after = np.minimum(low + 1, len(self._key) - 1)
        length = np.maximum(self._key[after] - self._key[low], 1)
        share = np.clip((wanted - self._key[low]) / length, 0.0, 1.0)
        return low, self._bytes[low] + share * (self._bytes[after] - self._bytes[low]), high


def _kept(start: int, end: list[int], sums: list[float], unknown: list[int]) -> float | None:
    """The bytes from an offset to the last point so far; None if the curve does not know them."""
    low = bisect_right(end, start, hi=len(sums)) - 1
    if low < 0 or unknown[-1] != unknown[low]:
        return None
    share = 0.0
    if low + 1 < len(sums):
        share = (start - end[low]) / (end[low + 1] - end[low])
        return sums[-1] - sums[low] - share * (sums[low + 1] - sums[low])
    return sums[-1] - sums[low]


class _Moves:
    """Groups that went from one offset to a later one."""

    def __init__(self, row: Numbers, first: Numbers, last: Numbers, since: Numbers, until: Numbers) -> None:
        self.row = row
        """Of the later sample."""
        self.first, self.last = first, last
        """The surveys."""
        self.since, self.until = since, until
        """Offsets."""

    @staticmethod
    def none() -> "_Moves":
        nothing = np.zeros(0, np.int64)
        return _Moves(nothing, nothing, nothing, nothing, nothing)


def _moves(samples: pa.Table, place: Numbers, rows: Numbers, logs: _Logs) -> _Moves:
    group, at = codes(samples["group"])[0], _micros(samples)
    look, has_look = logs.look(place[rows], at[rows])
    rows, look = rows[has_look], look[has_look]
    order = np.lexsort((at[rows], group[rows], place[rows]))
    rows, look = rows[order], look[order]
    offset, epoch = (_numbers(samples, name, rows) for name in ("offset", "leader_epoch"))
    told = samples[TOLD].to_numpy(zero_copy_only=False)[rows]
    if len(rows) < 2:
        return _Moves.none()
    first, last = look[:-1], look[1:]
    since, until = np.maximum(offset[:-1], logs.start[first]), offset[1:]
    counts = (
        (place[rows[1:]] == place[rows[:-1]])
        & (group[rows[1:]] == group[rows[:-1]])
        & (logs.log[first] == logs.log[last])
        & (until > since)
        & ~((epoch[:-1] >= 0) & (epoch[1:] < 0))
        & ~told[1:]
    )
    return _Moves(rows[1:][counts], first[counts], last[counts], since[counts], until[counts])


def _rows(samples: pa.Table, logs: _Logs, moves: _Moves) -> pa.Table:
    broker, brokers = codes(samples["broker"])
    own = samples.select(["topic", "partition", "group"]).take(pa.array(moves.row))
    if len(moves.row):
        amount, known = logs.bytes_between(logs.log[moves.last], moves.since, moves.until)
    else:
        amount, known = np.zeros(0), np.zeros(0, bool)
    return pa.table(
        {
            "broker": named(broker[logs.row[moves.last]], [*brokers, ""]),
            **{name: own[name] for name in own.column_names},
            "began": pa.array(logs.at[moves.first]).cast(_MOMENT),
            "ended": pa.array(logs.at[moves.last]).cast(_MOMENT),
            "messages": pa.array(moves.until - moves.since),
            "bytes": pa.array(np.rint(amount).astype(np.int64), mask=~known),
        }
    )
