"""To which group an unattributed delta belongs, as far as evidence tells.

A *candidate* is a group that can have fetched the delta: one that had the partition assigned in the span from
scrape to scrape, or up to a minute before or after; or one that committed offsets of the partition meanwhile
without ever having had it assigned (a consumer that only calls `assign()`). A group whose traffic the broker
counted under its own name before, meanwhile and afterwards is no candidate: its connection has a label, and
keeps it (`growth` calls it steady). Of the other candidates

exact        there is one, and it had the partition assigned throughout, by the records of the offsets topic
             or by surveys. A change of owner within the group does not matter. Nothing shows that a stranger
             reads the partition, too: a consumer without any group (see below).
apportioned  by how far the committed offsets of each candidate advanced in the span, less what was counted
             under its own name: an estimate, marked as one. Shares are whole numbers and add up. Also where
             one candidate is left, but is not certain.
unknown      there is none, or nothing tells how much each has read; or the times of the scrapes are not
             known.

Of a consumer without a group nothing tells but what it reads. Two things show it: on the same day there is a
delta of this partition that no candidate can have fetched; or, in an hour or the ones beside it, more was
fetched than the committed offsets of the group advanced.

All columns are numbers here. A *claim* is what is known of one group on one partition: intervals in order of
time that do not overlap, so that sums up to a moment tell how much of a span they cover.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from kelpie.pipeline.tables.table import HOW
from kelpie.pipeline.traffic.evidence_rows import ASSIGNED, COMMITTED, GRACE_US, known_as
from kelpie.pipeline.traffic.growth import AMOUNTS, Flags, Numbers, codes, combined, named

COUNTED, EXACT, APPORTIONED, UNKNOWN = "counted", "exact", "apportioned", "unknown"
_SHORTEST_US = 1_000_000
"""Scrapes that seem to be nearer to each other have the time of their copying, not of their making."""
_HOUR_US = 3_600_000_000
_TOLERANCE = 1.05
"""So much more than was committed may be fetched in an hour: consumers fetch ahead, and get whole batches."""
_WHOLE = 1 << 30
"""Weights are whole numbers that add up to about this."""

Fractions = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Attributed:
    rows: pa.Table
    """Of attributed_traffic."""
    of_delta: Numbers
    """For each row, the delta that it is a share of."""


@dataclass(frozen=True, slots=True)
class _Claims:
    """Intervals of one kind, sorted by claim and time; those of one claim do not overlap."""

    claim: Numbers
    began: Numbers
    ended: Numbers
    amount: Numbers
    """What happened in each interval: microseconds that went by, or records that were committed."""
    scale: int
    origin: int
    sums: Numbers

    def _place(self, bounds: Numbers, claim: Numbers, at: Numbers) -> Numbers:
        """How many bounds of all claims up to this one come before a moment."""
        key = self.claim * self.scale + (bounds - self.origin)
        wanted = claim * self.scale + np.clip(at - self.origin, 0, self.scale - 1)
        return np.searchsorted(key, wanted, "right")

    def chosen(self, rows: Flags) -> "_Claims":
        """Some of them."""
        amount = self.amount[rows]
        return replace(
            self,
            claim=self.claim[rows],
            began=self.began[rows],
            ended=self.ended[rows],
            amount=amount,
            sums=_sums(amount),
        )

    def begun(self, claim: Numbers, at: Numbers) -> Numbers:
        """How many intervals of all claims up to this one have begun at a moment."""
        return self._place(self.began, claim, at)

    def touching(self, claim: Numbers, first: Numbers, last: Numbers) -> Numbers:
        """How many intervals of a claim touch a span."""
        return self._place(self.began, claim, last) - self._place(self.ended, claim, first - 1)

    def within(self, claim: Numbers, first: Numbers, last: Numbers) -> Fractions:
        """The sum of all amounts in a span; of an interval that reaches out of it, the part in the span."""
        (until, missing), (since, before) = (self._up_to(claim, at) for at in (last, first))
        return (self.sums[until] - self.sums[since]) - (missing - before)

    def _up_to(self, claim: Numbers, at: Numbers) -> tuple[Numbers, Fractions]:
        """How many intervals have begun at a moment, and how much of the last one is still to come."""
        begun = self._place(self.began, claim, at)
        if not len(self.claim):
            return begun, np.zeros(len(at))
        last = np.maximum(begun - 1, 0)
        length = self.ended[last] - self.began[last]
        goes_on = (begun > 0) & (self.claim[last] == claim) & (length > 0)
        share = np.clip(self.ended[last] - at, 0, length) / np.maximum(length, 1)
        return begun, np.where(goes_on, share * self.amount[last], 0.0)


def attribute(deltas: pa.Table, evidence: pa.Table) -> Attributed:
    """`deltas`: rows of unattributed_traffic; `evidence`: as `evidence_rows` declares.
    All deltas of a partition on a day are needed: one of them may show that a stranger reads it.
    """
    deltas = deltas.combine_chunks()
    weighing = _Weighing(deltas, evidence.combine_chunks())
    how, pairs, weights = weighing.decide()
    return _shared(deltas, weighing, how, pairs, weights)


class _Weighing:
    """All pairs of a delta and a group that may have fetched it."""

    def __init__(self, deltas: pa.Table, evidence: pa.Table) -> None:
        self.count = deltas.num_rows
        self._messages = deltas["messages"].to_numpy()
        self._began = deltas["began"].cast(pa.int64()).fill_null(-1).to_numpy()
        self._ended = deltas["ended"].cast(pa.int64()).to_numpy()
        self._is_timed = deltas["began"].is_valid().to_numpy(zero_copy_only=False) & (
            self._ended - self._began >= _SHORTEST_US
        )
        place, places = _places(deltas, evidence)
        group, self.groups = codes(evidence["group"])
        groups = max(1, len(self.groups))
        most = int(max(place.max(initial=0), places.max(initial=0))) + 1
        claims, claim = np.unique(combined((places, group), (most, groups)), return_inverse=True)
        kind = np.asarray(evidence["kind"].combine_chunks())
        certain = evidence["is_certain"].to_numpy(zero_copy_only=False)
        self._assigned = _claims(evidence, claim, (kind == ASSIGNED) & certain)
        self._present = _claims(evidence, claim, (kind == ASSIGNED) & ~certain)
        commits = _claims(evidence, claim, kind == COMMITTED)
        self._commits = self._while_assigned(commits)
        owned = self._assigned.within(commits.claim, commits.began, commits.ended)
        self._torn = commits.chosen(owned < commits.ended - commits.began - 0.5)
        """Commits of a time in which the group was away: how much of it is of which moment is not known."""
        self._strangers = self._unexplained(commits)
        self._place = place
        self._pair(place, claims, groups)
        self._beside(deltas)
        self._candidates()

    def _while_assigned(self, commits: _Claims) -> _Claims:
        """A group that was away read nothing: its first commit afterwards is of the time since its return."""
        owned = self._assigned
        if not len(owned.claim):
            return commits
        last = np.maximum(owned.begun(commits.claim, commits.ended) - 1, 0)
        has = (owned.claim[last] == commits.claim) & (owned.began[last] < commits.ended)
        has &= owned.ended[last] >= commits.ended
        return replace(
            commits, began=np.where(has, np.maximum(commits.began, owned.began[last]), commits.began)
        )

    def _unexplained(self, commits: _Claims) -> _Claims:
        """The commits of groups that did not have the partition assigned."""
        first, last = commits.began - GRACE_US, commits.ended + GRACE_US
        certain, shown = (
            each.touching(commits.claim, first, last) for each in (self._assigned, self._present)
        )
        return commits.chosen((certain == 0) & (shown == 0))

    def _pair(self, place: Numbers, claims: Numbers, groups: int) -> None:
        """Each delta with every claim on its partition."""
        first = np.searchsorted(claims, place * groups, "left")
        last = np.searchsorted(claims, (place + 1) * groups, "left")
        counts = last - first
        self.delta: Numbers = np.repeat(np.arange(self.count), counts)
        within = np.arange(len(self.delta)) - np.repeat(np.cumsum(counts) - counts, counts)
        self._claim: Numbers = np.repeat(first, counts) + within
        self.group: Numbers = claims[self._claim] % groups

    def _beside(self, deltas: pa.Table) -> None:
        """What the broker counted under the group's own name meanwhile."""
        lists = deltas["beside"].combine_chunks()
        if isinstance(lists, pa.ChunkedArray):
            lists = lists.chunk(0) if lists.num_chunks else pa.array([], lists.type)
        sizes = np.diff(lists.offsets.to_numpy())
        others = lists.flatten()
        numbers = {name: number for number, name in enumerate(self.groups)}
        label, labels = codes(others.field("group"))
        own = np.array([numbers.get(name, -1) for name in labels], np.int64)[label]
        key = np.repeat(np.arange(self.count), sizes) * max(1, len(self.groups)) + own
        rows = np.flatnonzero(own >= 0)
        rows = rows[np.argsort(key[rows], kind="stable")]
        wanted = self.delta * max(1, len(self.groups)) + self.group
        at = np.minimum(np.searchsorted(key[rows], wanted), max(0, len(rows) - 1))
        known = key[rows][at] == wanted if len(rows) else np.zeros(len(wanted), bool)
        steady = others.field("is_steady").to_numpy(zero_copy_only=False)[rows].astype(bool)
        counted = others.field("messages").to_numpy()[rows]
        self._is_steady: Flags = known & steady[at] if len(rows) else known
        self._is_beside: Flags = known
        self._counted: Numbers = np.where(known, counted[at], 0) if len(rows) else np.zeros(len(wanted), int)
        unsteady = ~others.field("is_steady").to_numpy(zero_copy_only=False).astype(bool)
        self._unsteady = np.bincount(np.repeat(np.arange(self.count), sizes)[unsteady], minlength=self.count)

    def _candidates(self) -> None:
        began, ended = self._began[self.delta], self._ended[self.delta]
        near = (self._claim, began - GRACE_US, ended + GRACE_US)
        can = (self._assigned.touching(*near) > 0) | (self._present.touching(*near) > 0)
        can |= self._strangers.touching(self._claim, began, ended) > 0
        self._can: Flags = can & self._is_timed[self.delta] & ~self._is_steady
        left = np.bincount(self.delta[self._can], minlength=self.count)
        # A group that the broker counts, and of which nothing else is known, may have lost its label, too.
        beside = np.bincount(self.delta[self._can & self._is_beside], minlength=self.count)
        self._left: Numbers = left + self._unsteady - beside
        self._alone: Flags = self._can & (self._left[self.delta] == 1)

    @property
    def is_strangers(self) -> Flags:
        """Whether no candidate can have fetched a delta."""
        strange: Flags = self._is_timed & (self._left == 0)
        return strange

    def decide(self) -> tuple[Numbers, Flags, Fractions]:
        """For each delta its verdict (0 exact, 1 apportioned, 2 unknown); the pairs that share; weights."""
        began, ended = self._began[self.delta], self._ended[self.delta]
        throughout = self._assigned.within(self._claim, began, ended) >= ended - began - 0.5
        advanced = self._commits.within(self._claim, began, ended)
        sure = self._alone & throughout & ~self._is_shared[self.delta]
        sure &= ~self._is_exceeded(sure, advanced)
        certain = np.bincount(self.delta[sure], minlength=self.count) > 0
        weights = np.where(self._can, np.maximum(advanced - self._counted, 0.0), 0.0)
        # A single candidate gets all of it, also without a commit: of groups without one, nothing tells more.
        shown = throughout | (self._present.within(self._claim, began, ended) > 0)
        weights = np.where(self._alone & (weights == 0) & shown, 1.0, weights)
        weights = np.where(certain[self.delta], sure.astype(float), weights)
        total = np.bincount(self.delta, weights, minlength=self.count)
        how = np.where(certain, 0, np.where(total > 0, 1, 2))
        return how, weights > 0, weights

    @property
    def _is_shared(self) -> Flags:
        """Whether a stranger reads the partition of a delta on this day."""
        shared: Flags = np.isin(self._place, np.unique(self._place[self.is_strangers]))
        return shared

    def _is_exceeded(self, sure: Flags, advanced: Fractions) -> Flags:
        """Whether more was fetched than the group committed, in the hour of a delta or in one beside it."""
        span = (self._claim, self._began[self.delta], self._ended[self.delta])
        rows = np.flatnonzero(sure & (advanced > 0) & (self._torn.touching(*span) == 0))
        if not len(rows):
            return np.zeros(len(sure), bool)
        every = self._ended // _HOUR_US
        first = every.min() - 1
        hours = int(every.max() - first) + 2
        hour = every[self.delta[rows]] - first
        keys, key = np.unique(self._claim[rows] * hours + hour, return_inverse=True)
        messages = self._messages[self.delta[rows]]
        fetched = np.bincount(key, messages + self._counted[rows])
        committed = np.bincount(key, advanced[rows])
        largest = np.zeros(len(keys), np.int64)
        np.maximum.at(largest, key, messages)
        exceeded = keys[fetched > _TOLERANCE * committed + largest]
        near = np.concatenate([exceeded - 1, exceeded, exceeded + 1])
        every = self._ended[self.delta] // _HOUR_US - first
        flags: Flags = sure & np.isin(self._claim * hours + every, near)
        return flags


def _places(deltas: pa.Table, evidence: pa.Table) -> tuple[Numbers, Numbers]:
    """The number of the partition of each delta, and of each row of evidence."""
    topics: dict[str, int] = {}
    numbers = []
    for table in (deltas, evidence):
        topic, names = codes(table["topic"])
        own = np.array([topics.setdefault(known_as(name), len(topics)) for name in names], np.int64)
        numbers.append((own[topic] if len(own) else topic, table["partition"].to_numpy().astype(np.int64)))
    most = max(int(partition.max(initial=0)) for _, partition in numbers) + 1
    (topic, partition), (known_topic, known_partition) = numbers
    return topic * most + partition, known_topic * most + known_partition


def _claims(evidence: pa.Table, claim: Numbers, chosen: Flags) -> _Claims:
    rows = np.flatnonzero(chosen)
    began, ended = (evidence[name].cast(pa.int64()).to_numpy()[rows] for name in ("began", "ended"))
    claim = claim[rows]
    advance = evidence["advance"].to_numpy()[rows]
    origin = int(began.min(initial=0) if len(rows) else 0) - 1
    scale = int(ended.max(initial=0) if len(rows) else 0) - origin + 2
    order = np.lexsort((ended, began, claim))
    claim, began, ended, advance = claim[order], began[order], ended[order], advance[order]
    kinds = evidence["kind"].combine_chunks().take(pa.array(rows[order]))
    amount = np.where(np.asarray(kinds) == COMMITTED, advance, ended - began)
    return _Claims(claim, began, ended, amount, scale, origin, _sums(amount))


def _sums(amount: Numbers) -> Numbers:
    return np.append([0], np.cumsum(amount))


def _shared(
    deltas: pa.Table, weighing: _Weighing, how: Numbers, pairs: Flags, weights: Fractions
) -> Attributed:
    """A row for each share; deltas of unknown groups are a row without a group."""
    known, lost = np.flatnonzero(pairs), np.flatnonzero(how == 2)
    delta, group = weighing.delta[known], weighing.group[known]
    rank = np.argsort(np.argsort(np.array(weighing.groups or [""], object)))[group]
    totals = [deltas[name].to_numpy() for name in AMOUNTS]
    shares = [shared(total, delta, weights[known], rank) for total in totals]
    some = (shares[0] > 0) | (shares[1] > 0) | (shares[2] > 0)
    of_delta = np.concatenate([delta[some], lost])
    rows = deltas.select(["broker", "topic", "partition", "label", "began", "ended"]).take(pa.array(of_delta))
    names = named(np.concatenate([group[some], np.zeros(len(lost), np.int64)]), weighing.groups or [""])
    is_lost = pa.array(np.arange(len(of_delta)) >= some.sum())
    columns = {
        "group": pa.compute.if_else(is_lost, pa.scalar(None, pa.string()), names.cast(pa.string())),
        HOW: named(how[of_delta], [EXACT, APPORTIONED, UNKNOWN]),
        **{
            name: pa.array(np.concatenate([share[some], total[lost]]))
            for name, share, total in zip(AMOUNTS, shares, totals, strict=True)
        },
    }
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    return Attributed(rows, of_delta)


def shared(totals: Numbers, of_total: Numbers, weights: Fractions, rank: Numbers) -> Numbers:
    """Whole shares of whole totals by weights: each is rounded down, and what is left goes to those with
    the largest remainders, of equal ones to those with the lowest rank. They add up to the totals.
    """
    if not len(of_total):
        return np.zeros(0, np.int64)
    sums = np.bincount(of_total, weights, minlength=len(totals))
    whole = np.maximum(np.rint(weights / sums[of_total] * _WHOLE), 1).astype(np.int64)
    divisor = np.zeros(len(totals), np.int64)
    np.add.at(divisor, of_total, whole)
    each = divisor[of_total]
    times, rest = np.divmod(totals[of_total], each)
    more, remainder = np.divmod(rest * whole, each)  # Below 2**62: both factors are at most about 2**30.
    shares = times * whole + more
    given = np.zeros(len(totals), np.int64)
    np.add.at(given, of_total, shares)
    order = np.lexsort((rank, -remainder, of_total))
    ordered = of_total[order]
    starts = np.append([0], np.flatnonzero(np.diff(ordered)) + 1)
    turn = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    shares[order] += turn < (totals - given)[ordered]
    return shares
