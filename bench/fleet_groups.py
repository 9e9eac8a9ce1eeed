"""Groups of a fleet: who is in them and what they commit, as disks, logs and looks at them show it.

A group reads a topic of its own, into which records come at a steady pace, and commits every five seconds.
What happens to it is told by its methods, and goes to the offsets topic and into the log of its coordinator
at once, in the words of Kafka 4. What it looked like at any time can be asked afterwards.
"""

import uuid
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bench.fleet_disks import Disks, Position, Seat, Transaction, coordinator_of, home

T = TypeVar("T")

ROUND_MS = 5_000
MINUTE_MS = 60_000
DAY_MS = 86_400_000
_REBALANCE_MS = 3_000
"""Until everybody has heard of it: members send a heartbeat every three seconds."""

JOINED, LEFT, EXPIRED, POLL_INTERVAL = "joined", "left", "expired", "poll-interval"
"""Causes of rebalances, as the table of these calls them."""


@dataclass(frozen=True, slots=True)
class Line:
    """Of a client's log. Without a text of librdkafka's kind, it is of a Java consumer."""

    at: int
    member: str
    text: str
    level: str = "INFO"


@dataclass(frozen=True, slots=True)
class Hanging:
    """A transaction of some producer that is open in a partition that the group reads."""

    position: Position
    since: int
    producer: int
    state: str
    """What its coordinator says; empty: it knows nothing of it."""
    timeout_ms: int = -1


@dataclass
class Group:
    """One group, from its beginning to the end of what is known."""

    name: str
    number: int
    partitions: int
    start: int
    now: int
    disks: Disks
    cluster: int = 1
    late_ms: int = 0
    """By so much later than others does it meet its fate."""
    variant: int = 0
    """Some faults happen in one way or another."""
    is_idle: bool = False
    """Nothing comes into its topic any more."""
    hanging: Hanging | None = None
    pending_since: int | None = None
    """A transaction has committed offsets for it, and has not ended."""
    client_log: list[Line] = field(default_factory=list)
    broker_log: list[tuple[int, str]] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    """Codes of rules that must find something; everything else of warning or worse is a mistake."""
    causes: Counter[str] = field(default_factory=Counter)
    """Of its rebalances."""
    _there: list[int] = field(default_factory=list)
    """Numbers of members."""
    _lives: Counter[int] = field(default_factory=Counter)
    _generation: int = 0
    _rosters: list[tuple[int, list[Seat]]] = field(default_factory=list)
    _commits: list[tuple[int, dict[Position, int]]] = field(default_factory=list)

    @property
    def topic(self) -> str:
        return f"orders-{self.number:04}"

    @property
    def positions(self) -> list[Position]:
        return [(self.topic, partition) for partition in range(self.partitions)]

    @property
    def pace(self) -> int:
        """Records in a round, in each partition."""
        return 10 + (self.number + 7 * self.cluster) % 40

    def end(self, at: int) -> int:
        """Where the log of each of its partitions ends."""
        passed = 0 if self.is_idle else (at - self.start) // ROUND_MS
        return 1_000 * self.cluster + passed * self.pace

    def stable(self, position: Position, at: int) -> int:
        """How far those can read who want committed records only."""
        held = self.hanging
        return self.end(at if held is None or held.position != position else min(at, held.since))

    def before_end(self, minutes: float) -> int:
        """The moment of a fate."""
        return self.now - round(minutes * MINUTE_MS) + self.late_ms

    # Members.

    def starts(self, at: int, members: int = 2, topics: Sequence[str] = ()) -> int:
        """All members at once. When they have their assignment."""
        self._there = list(range(members))
        self._lives.update(self._there)
        reasons = [self._adds(at, it) for it in self._there]
        return self._rebalance(at, reasons[0], JOINED, topics)

    def joins(self, at: int, member: int) -> int:
        reason = self._renewed(at, member)
        self._there = sorted({*self._there, member})
        return self._rebalance(at, reason, JOINED)

    def leaves(self, at: int, member: int, why: str = "the consumer is being closed", how: str = LEFT) -> int:
        gone = self.member_id(member)
        self._says(
            at,
            f"[Group {self.name}] Member {gone} has left group through explicit `LeaveGroup` request; client "
            f"reason: {why}",
        )
        self._there.remove(member)
        return self._rebalance(at, f"explicit `LeaveGroup` request for ({gone}) members.", how)

    def expires(self, at: int, member: int) -> int:
        """Its coordinator has not heard of it for a whole session."""
        gone = self.member_id(member)
        self._says(at, f"Member {gone} in group {self.name} has failed, removing it from the group.")
        self._there.remove(member)
        return self._rebalance(at, f"removing member {gone} on heartbeat expiration", EXPIRED)

    def client_id(self, member: int) -> str:
        return f"{self.name}-{member}"

    def member_id(self, member: int) -> str:
        """Another one in each life."""
        life = f"{self.cluster}/{self.name}/{member}/{self._lives[member]}"
        return f"{self.client_id(member)}-{uuid.uuid5(uuid.NAMESPACE_URL, life)}"

    def logs(self, at: int, member: int, text: str, level: str = "INFO") -> None:
        self.client_log.append(Line(at, self.client_id(member), text, level))

    def _renewed(self, at: int, member: int) -> str:
        self._lives[member] += 1
        return self._adds(at, member)

    def _adds(self, at: int, member: int) -> str:
        new = self.member_id(member)
        state = "Stable" if self._rosters and self._rosters[-1][1] else "Empty"
        self._says(
            at - 200,
            f"Dynamic member with unknown member id joins group {self.name} in {state} state. Created a new "
            f"member id {new} and requesting the member to rejoin with this id.",
        )
        self._says(
            at - 100,
            f"Pending dynamic member with id {new} joins group {self.name} in {state} state. Adding to the "
            "group now.",
        )
        return (
            f"Adding new member {new} with group instance id null; client reason: need to re-join with the "
            f"given member-id: {new}"
        )

    def _rebalance(self, at: int, reason: str, cause: str, topics: Sequence[str] = ()) -> int:
        self._says(
            at,
            f"Preparing to rebalance group {self.name} in state PreparingRebalance with old generation "
            f"{self._generation} (reason: {reason}).",
        )
        self._generation += 1
        self.causes[cause] += 1
        seats = self._seats(topics)
        if not seats:
            self._says(at, f"Group {self.name} with generation {self._generation} is now empty.")
            self._put(at, seats)
            return at
        settled = at + _REBALANCE_MS
        members = len(seats)
        self._says(
            settled - 50,
            f"Stabilized group {self.name} generation {self._generation} with {members} members.",
        )
        self._says(
            settled,
            f"Assignment received from leader {seats[0].member_id} for group {self.name} for generation "
            f"{self._generation}. The group has {members} members, 0 of which are static.",
        )
        self._put(settled, seats)
        return settled

    def _seats(self, topics: Sequence[str]) -> list[Seat]:
        """Partitions in a row for each, as the range assignor gives them; none to those who read others."""
        readers = [it for it in self._there if it >= len(topics) or topics[it] == self.topic]
        size, more = divmod(self.partitions, len(readers)) if readers else (0, 0)
        seats, first = [], 0
        for member in self._there:
            read = topics[member] if member < len(topics) else self.topic
            last = first + (size + (readers.index(member) < more) if member in readers else 0)
            held = tuple(self.positions[first:last])
            seats.append(Seat(self.client_id(member), self.member_id(member), (read,), held))
            first = last
        return seats

    def _put(self, at: int, seats: list[Seat]) -> None:
        self.disks.generation(self.name, at, self._generation, seats)
        self._rosters.append((at, seats))

    def _says(self, at: int, text: str) -> None:
        """The coordinator does; logs of last week are gone."""
        if at >= self.start:
            about = f"[GroupCoordinator id={coordinator_of(self.name)} topic=__consumer_offsets "
            self.broker_log.append((at, f"{about}partition={home(self.name)}] {text}"))

    # Offsets.

    def rounds(self, begin: int, end: int) -> range:
        """The moments at which it commits; each group has its own, so that they do not all come at once."""
        return range(begin + (self.number * 137) % ROUND_MS, end, ROUND_MS)

    def at(self, offset: int, positions: Sequence[Position] | None = None) -> dict[Position, int]:
        return dict.fromkeys(self.positions if positions is None else positions, offset)

    def commits(
        self, at: int, offsets: dict[Position, int], *, epoch: int = 3, within: Transaction | None = None
    ) -> None:
        self.disks.commit(self.name, at, offsets, epoch=epoch, within=within)
        if within is None or not (within.is_open or within.is_aborted):
            self._commits.append((at, {**(self._commits[-1][1] if self._commits else {}), **offsets}))

    def runs(
        self,
        begin: int,
        end: int,
        read: Callable[[int], int] | None = None,
        positions: Sequence[Position] | None = None,
    ) -> None:
        """Commits all the while: what it has read by then, everything unless told otherwise."""
        for at in self.rounds(begin, end):
            self.commits(at, self.at((read or self.end)(at), positions))

    def is_forgotten(self, at: int) -> None:
        """Offsets and group expire."""
        self.disks.forget(self.name, at, self.positions)
        self._commits.append((at, {}))
        self._rosters.append((at, []))

    # Looks.

    def seats(self, at: int) -> list[Seat]:
        """Who was in it; nobody: it was empty."""
        return _newest(self._rosters, at) or []

    def committed(self, at: int) -> dict[Position, int]:
        return _newest(self._commits, at) or {}

    def exists(self, at: int) -> bool:
        return bool(self.seats(at) or self.committed(at))


def _newest(rows: Sequence[tuple[int, T]], at: int) -> T | None:
    """The last one that is not later. Rows are in order."""
    place = bisect_right(rows, at, key=lambda row: row[0])
    return rows[place - 1][1] if place else None
