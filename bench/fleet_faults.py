"""Groups of a fleet and what befalls them: each kind of fault, and what the doctor must say of it.

A group reads a topic of its own, into which records come at a steady pace, and commits every five seconds. A
fault changes what one group does. `told` is what must be found, as codes of rules; everything else of warning
or worse is a mistake.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from bench.fleet_disks import Disks, Position, Seat, Transaction

ROUND_MS = 5_000
MINUTE_MS = 60_000
DAY_MS = 86_400_000


@dataclass
class Group:
    """One group, as it is at the end."""

    name: str
    number: int
    partitions: int
    start: int
    now: int
    seats: list[Seat] = field(default_factory=list)
    """Who is in it at the end; nobody: it is empty."""
    committed: dict[Position, int] = field(default_factory=dict)
    """At the end, as the coordinator tells it."""
    earlier: dict[Position, int] = field(default_factory=dict)
    """The same, at the look before."""
    client_log: list[str] = field(default_factory=list)
    broker_log: list[tuple[int, str]] = field(default_factory=list)
    told: set[str] = field(default_factory=set)

    @property
    def topic(self) -> str:
        return f"orders-{self.number:04}"

    @property
    def positions(self) -> list[Position]:
        return [(self.topic, partition) for partition in range(self.partitions)]

    @property
    def pace(self) -> int:
        """Records in a round, in each partition."""
        return 10 + self.number % 40

    def end(self, at: int) -> int:
        """Where the log of each of its partitions ends."""
        return 1_000 + (at - self.start) // ROUND_MS * self.pace

    def rounds(self, begin: int, end: int) -> range:
        """The moments at which it commits; each group has its own, so that they do not all come at once."""
        return range(begin + (self.number * 137) % ROUND_MS, end, ROUND_MS)

    def usual_seats(self, count: int = 2) -> list[Seat]:
        shares = [self.positions[number::count] for number in range(count)]
        return [
            Seat(f"{self.name}-{number}", (self.topic,), tuple(share)) for number, share in enumerate(shares)
        ]

    def at(self, offset: int) -> dict[Position, int]:
        return dict.fromkeys(self.positions, offset)

    def runs(
        self, disks: Disks, begin: int, end: int, read: Callable[[int], int] | None = None, epoch: int = 3
    ) -> None:
        """Commits all the while: what it has read by then, everything unless told otherwise."""
        for at in self.rounds(begin, end):
            offsets = self.at((read or self.end)(at))
            disks.commit(self.name, at, offsets, epoch=epoch)
            self.committed = offsets
            if at <= earlier_look(self.now):
                self.earlier = offsets


def earlier_look(now: int) -> int:
    """When the tools were run the first time; the second time is now."""
    return now - 4 * MINUTE_MS


def healthy(group: Group, disks: Disks) -> None:
    group.seats = group.usual_seats()
    disks.generation(group.name, group.start, 1, group.seats)
    group.runs(disks, group.start, group.now)


def restarted(group: Group, disks: Disks) -> None:
    """A rolling restart of two members: four generations, and nothing is wrong."""
    group.seats = group.usual_seats()
    disks.generation(group.name, group.start, 1, group.seats)
    middle = (group.start + group.now) // 2
    for number, count in enumerate((1, 2, 1, 2), start=2):
        disks.generation(group.name, middle + number * 8_000, number, group.usual_seats(count))
    group.runs(disks, group.start, group.now)


def transactional(group: Group, disks: Disks) -> None:
    """Commits in transactions, one in four of which is aborted: none of these counts."""
    group.seats = group.usual_seats()
    disks.generation(group.name, group.start, 1, group.seats)
    for number, at in enumerate(group.rounds(group.start, group.now)):
        aborted = number % 4 == 3
        offsets = group.at(group.end(at) + (5_000 if aborted else 0))
        disks.commit(group.name, at, offsets, within=Transaction(9_000 + group.number, is_aborted=aborted))
        if not aborted:
            group.committed = offsets
            if at <= earlier_look(group.now):
                group.earlier = offsets


def stopped(group: Group, disks: Disks) -> None:
    """Its consumers were shut down, and nobody started them again."""
    gone = group.now - 10 * MINUTE_MS
    disks.generation(group.name, group.start, 1, group.usual_seats())
    group.runs(disks, group.start, gone)
    disks.generation(group.name, gone, 2, [])
    group.told = {"KLP310"}


def stalled(group: Group, disks: Disks) -> None:
    """It commits the same offset again and again: a record that it cannot digest."""
    stuck = group.now - 8 * MINUTE_MS
    group.seats = group.usual_seats()
    disks.generation(group.name, group.start, 1, group.seats)
    group.runs(disks, group.start, stuck)
    last = group.end(stuck)
    group.runs(disks, stuck, group.now, lambda _: last)
    group.told = {"KLP309"}


def rewound(group: Group, disks: Disks) -> None:
    """Somebody set its offsets back with a tool, while it was down for a moment; it reads again since."""
    moment = group.now - 6 * MINUTE_MS
    group.seats = group.usual_seats()
    disks.generation(group.name, group.start, 1, group.seats)
    group.runs(disks, group.start, moment - 20_000)
    disks.generation(group.name, moment - 15_000, 2, [])
    back = 200 * group.pace
    disks.commit(group.name, moment, group.at(group.end(moment) - back), epoch=-1)
    disks.generation(group.name, moment + 2_000, 3, group.seats)
    group.runs(disks, moment + 3_000, group.now, lambda at: group.end(at) - back + 100)
    group.told = {"KLP308"}


def expired(group: Group, disks: Disks) -> None:
    """Nobody was in it for more than seven days."""
    last = group.start - 8 * DAY_MS
    disks.generation(group.name, last - MINUTE_MS, 1, group.usual_seats())
    for number, at in enumerate(range(last - MINUTE_MS, last, ROUND_MS)):
        disks.commit(group.name, at, group.at(500 + number))
    disks.generation(group.name, last, 2, [])
    disks.forget(group.name, group.now - 20 * MINUTE_MS, group.positions)
    group.told = {"KLP302"}


def storm(group: Group, disks: Disks) -> None:
    """One member comes and goes, and the other one has to rejoin each time."""
    group.seats = group.usual_seats(1)
    disks.generation(group.name, group.start, 1, group.seats)
    begin = group.now - 7 * MINUTE_MS
    generation = 1
    for at in range(begin, group.now - 2 * MINUTE_MS, 12_000):
        generation += 1
        count = 1 + generation % 2
        disks.generation(group.name, at, generation, group.usual_seats(count))
        group.seats = group.usual_seats(count)
        why = f"Adding new member {group.seats[-1].member_id}" if count == 2 else "a member left"
        group.broker_log += [
            (
                at - 900,
                f"[GroupCoordinator id=1] Preparing to rebalance group {group.name} in state "
                f"PreparingRebalance with old generation {generation - 1} (reason: {why}).",
            ),
            (
                at,
                f"[GroupCoordinator id=1] Stabilized group {group.name} generation {generation} with "
                f"{count} members.",
            ),
        ]
    group.runs(disks, group.start, group.now)
    group.told = {"KLP201"}


def unstable(group: Group, disks: Disks) -> None:
    """A producer died between its commit and the end of its transaction; consumers get no position."""
    group.seats = group.usual_seats(1)
    disks.generation(group.name, group.start, 1, group.seats)
    begin = group.now - 5 * MINUTE_MS
    group.runs(disks, group.start, begin)
    disks.commit(
        group.name,
        begin + 500,
        group.at(group.end(begin)),
        within=Transaction(9_900 + group.number, is_open=True),
    )
    for at in range(begin + 2_000, group.now, 15_000):
        partitions = ", ".join(f"{topic}-{partition}" for topic, partition in group.positions)
        group.client_log.append(
            f"[{stamp(at)}] INFO [Consumer clientId={group.seats[0].member}, groupId={group.name}] The "
            "following partitions still have unstable offsets which are not cleared on the broker side: "
            f"[{partitions}], this could be either transactional offsets waiting for completion, or normal "
            "offsets waiting for replication after appending to local log "
            "(org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)"
        )
    # Nothing is committed while it waits, and records come in: that is so, and has to be said, too.
    group.told = {"KLP307", "KLP310"}


def lost_topic(group: Group, disks: Disks) -> None:
    """Two members read, and a third one subscribes to a topic that does not exist."""
    group.seats = [*group.usual_seats(), Seat(f"{group.name}-2", (f"{group.topic}-misspelt",))]
    disks.generation(group.name, group.start, 1, group.seats)
    group.runs(disks, group.start, group.now)
    group.told = {"KLP207"}


FAULTS: dict[str, Callable[[Group, Disks], None]] = {
    "stopped": stopped,
    "stalled": stalled,
    "rewound": rewound,
    "expired": expired,
    "storm": storm,
    "unstable": unstable,
    "lost-topic": lost_topic,
}
OUTAGE = "outage"
"""Two of three brokers die: a fault of a whole cluster, see `fleet_evidence`."""


def stamp(at: int) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415

    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S,") + f"{at % 1000:03}"
