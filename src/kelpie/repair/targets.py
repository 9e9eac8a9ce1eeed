"""Where a reset shall put a group: from what is wanted to an offset for each partition, within its log.

As Kafka's own tool does it: an offset before the beginning of the log becomes the beginning, one beyond its
end the end, and both are said.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.repair.log_ends import Ends, Found
from kelpie.repair.offsets import Claim
from kelpie.repair.plan import CannotRepair


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
    """Offsets that are named: in a file, or as the last ones that are known."""

    claims: Mapping[TopicPartition, Claim]
    words: str


Aim = ToEarliest | ToLatest | ToTime | ShiftBy | ToGiven


@dataclass(frozen=True, slots=True)
class Target:
    """Where one partition goes. `before` is None where nothing is committed."""

    partition: TopicPartition
    before: int | None
    offset: int
    note: str = ""
    """That it is not quite what was asked for, and why."""
    claim: Claim | None = None
    """What it was taken from, if it was named."""

    @property
    def changes(self) -> bool:
        return self.before != self.offset


@dataclass(frozen=True, slots=True)
class Missed:
    """A partition that stays as it is, and why."""

    partition: TopicPartition
    reason: str


def target_of(
    aim: Aim, partition: TopicPartition, before: int | None, ends: Ends, found: Found | None = None
) -> Target | Missed:
    """`found`: the offset of the time that is wanted, for ToTime."""
    claim = None
    note = ""
    if isinstance(aim, ToGiven):
        claim = aim.claims.get(partition)
        if claim is None:
            return Missed(partition, f"no offset is known {aim.words}")
        wanted = claim.offset
        if not ends.known:
            return Target(partition, before, wanted, f"not checked: {ends.failure}", claim)
    elif not ends.known:
        return Missed(partition, ends.failure)
    elif isinstance(aim, ToEarliest):
        wanted = ends.earliest
    elif isinstance(aim, ToLatest):
        wanted = ends.latest
    elif isinstance(aim, ShiftBy):
        if before is None:
            return Missed(partition, "nothing is committed from which it could be shifted")
        wanted = before + aim.count
    else:
        if found is None or found.failure:
            return Missed(partition, found.failure if found is not None else "nobody could be asked")
        wanted, note = _at_time(found, ends)
    kept = min(max(wanted, ends.earliest), ends.latest)
    if kept > wanted:
        note = f"{wanted} is gone; the log begins at {kept}"
    elif kept < wanted:
        note = f"{wanted} is beyond the end of the log"
    return Target(partition, before, kept, note, claim if kept == wanted else None)


def _at_time(found: Found, ends: Ends) -> tuple[int, str]:
    if found.coarse:
        wanted = found.offset if found.offset >= 0 else ends.earliest
        return wanted, "about: this release knows only when segments were written"
    return (found.offset, "") if found.offset >= 0 else (ends.latest, "no record is that new: the end")


def scope(
    aim: Aim, committed: Collection[TopicPartition], cluster: ClusterView, topics: Sequence[str]
) -> list[TopicPartition]:
    """The partitions that a reset is about. `topics` as Kafka's tool takes them: "orders", "orders:0,1".

    Without any: all that the group has committed, or that are named. Raises CannotRepair.
    """
    if not topics:
        return sorted({*committed, *(aim.claims if isinstance(aim, ToGiven) else ())})
    found: set[TopicPartition] = set()
    for text in topics:
        topic, _, numbers = text.partition(":")
        there = cluster.topics.get(topic, ())
        if not there:
            raise CannotRepair(f"There is no topic {topic} in this cluster.")
        if not numbers:
            found.update(there)
            continue
        for number in numbers.split(","):
            name = TopicPartition(topic, int(number) if number.isdigit() else -1)
            if name not in there:
                raise CannotRepair(
                    f"{topic} has no partition {number}; it has {len(there)}: 0 to {len(there) - 1}."
                )
            found.add(name)
    return sorted(found)


def parse_time(text: str) -> Instant:
    """Reads 2026-11-16T02:18:03[.000][Z or +01:00]; UTC unless it says otherwise. Raises CannotRepair."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CannotRepair(
            f"{text!r} is no time. Write it as 2026-11-16T02:18:03 (UTC), or with a zone: …+01:00."
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
