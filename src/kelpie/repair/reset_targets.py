"""The offset that a reset gives to each partition: the wanted one, if the log has it.

As in Kafka's own tool, an offset before the beginning of the log becomes the beginning, and one beyond the
end of the log becomes the end. The note of the new offset says so.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kelpie.client.admin.log_ends import OffsetAt
from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.model.numbers import whole_number
from kelpie.model.time import Instant, time_from
from kelpie.repair.claims import Claim
from kelpie.repair.log_ends import Ends
from kelpie.repair.plan import CannotRepair, SkippedPartition


@dataclass(frozen=True, slots=True)
class ToEarliest:
    words = "to the earliest record"


@dataclass(frozen=True, slots=True)
class ToLatest:
    words = "to the end"


@dataclass(frozen=True, slots=True)
class ToTime:
    at: Instant

    @property
    def words(self) -> str:
        return f"to {datetime.fromtimestamp(self.at / 1000, UTC).isoformat(timespec='milliseconds')}"


@dataclass(frozen=True, slots=True)
class ShiftBy:
    count: int

    @property
    def words(self) -> str:
        return f"by {self.count:+,} records"


@dataclass(frozen=True, slots=True)
class ToGiven:
    """Offsets from a file, or the last ones that are known."""

    claims: Mapping[TopicPartition, Claim]
    words: str


ResetTarget = ToEarliest | ToLatest | ToTime | ShiftBy | ToGiven


@dataclass(frozen=True, slots=True)
class NewOffset:
    """What is committed for one partition. `before` is None where nothing is committed yet."""

    partition: TopicPartition
    before: int | None
    offset: int
    note: str = ""
    """Why it is not exactly the offset that was asked for."""
    claim: Claim | None = None
    """The claim that it is from, if there is one."""

    @property
    def changes(self) -> bool:
        return self.before != self.offset


def new_offset(
    target: ResetTarget,
    partition: TopicPartition,
    before: int | None,
    ends: Ends,
    at_time: OffsetAt | None = None,
) -> NewOffset | SkippedPartition:
    """`at_time`: the offset of the wanted time, for ToTime."""
    claim = None
    note = ""
    if isinstance(target, ToGiven):
        claim = target.claims.get(partition)
        if claim is None:
            return SkippedPartition(partition, f"no offset is known {target.words}")
        wanted = claim.offset
        if not ends.known:
            return NewOffset(partition, before, wanted, f"not checked: {ends.failure}", claim)
    elif not ends.known:
        return SkippedPartition(partition, ends.failure)
    elif isinstance(target, ToEarliest):
        wanted = ends.earliest
    elif isinstance(target, ToLatest):
        wanted = ends.latest
    elif isinstance(target, ShiftBy):
        if before is None:
            return SkippedPartition(partition, "nothing is committed from which it could be shifted")
        wanted = before + target.count
    else:
        if at_time is None or at_time.failure:
            reason = at_time.failure if at_time is not None else "nobody could be asked"
            return SkippedPartition(partition, reason)
        wanted, note = _at_time(at_time, ends)
    kept = min(max(wanted, ends.earliest), ends.latest)
    if kept > wanted:
        note = f"{wanted} is gone; the log begins at {kept}"
    elif kept < wanted:
        note = f"{wanted} is beyond the end of the log"
    return NewOffset(partition, before, kept, note, claim if kept == wanted else None)


def _at_time(at_time: OffsetAt, ends: Ends) -> tuple[int, str]:
    offset = at_time.offset
    if at_time.coarse:
        wanted = offset if offset >= 0 else ends.earliest
        return wanted, "about: this release knows only when segments were written"
    return (offset, "") if offset >= 0 else (ends.latest, "no record is that new: the end")


def scope(
    target: ResetTarget, committed: Collection[TopicPartition], cluster: ClusterView, topics: Sequence[str]
) -> list[TopicPartition]:
    """The partitions that a reset changes. `topics` as Kafka's tool takes them: "orders", "orders:0,1".

    Without topics: all that the group has committed, or that the target names. Raises CannotRepair.
    """
    if not topics:
        return sorted({*committed, *(target.claims if isinstance(target, ToGiven) else ())})
    chosen: set[TopicPartition] = set()
    for text in topics:
        topic, _, numbers = text.partition(":")
        partitions = cluster.topics.get(topic, ())
        if not partitions:
            raise CannotRepair(f"There is no topic {topic} in this cluster.")
        if not numbers:
            chosen.update(partitions)
            continue
        for number in numbers.split(","):
            partition = whole_number(number)
            name = TopicPartition(topic, -1 if partition is None else partition)
            if name not in partitions:
                raise CannotRepair(
                    f"{topic} has no partition {number}; it has {len(partitions)}: 0 to "
                    f"{len(partitions) - 1}."
                )
            chosen.add(name)
    return sorted(chosen)


def parse_time(text: str) -> Instant:
    """Reads 2026-11-16T02:18:03[.000][Z or +01:00]; UTC unless it says otherwise. Raises CannotRepair."""
    try:
        return time_from(text)
    except ValueError:
        raise CannotRepair(
            f"{text!r} is no time. Write it as 2026-11-16T02:18:03 (UTC), or with a zone: …+01:00."
        ) from None
