"""Random histories of the offsets topic, as rows of bronze tables, cut into rounds in which they come in.

The log of each partition has plain commits that go forward and back, removals, transactions that are
committed, aborted or left open, and elections; generations of classic groups, and epochs of a KIP-848 group.
A leader that dies may leave records that its successor has not: the disk of the dead one has them at offsets
where the new leader has written others. Each record comes from one to three replicas, and over the network,
where its leader epoch may not be known. A log of a broker tells of some of the rebalances. Surveys look at
brokers, at the leaders of the offsets topic, at the ends of the logs that groups read, and at states and
offsets of groups, also of one whose commits were not read. One of the logs is created again.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from kelpie.evidence.snapshot_files import Header, header_line
from kelpie.observations import (
    OFFSETS_TOPIC,
    BrokerView,
    GroupState,
    Listing,
    Member,
    Observations,
    PartitionView,
)
from kelpie.observations.cluster import NO_LEADER
from kelpie.pipeline.sources.snapshots.outputs import rows as survey_rows
from tests.pipeline.rows import NOON
from tests.pipeline.transforms import kip848

COMMITS, MARKERS, RECORDS, EVENTS = "offset_commit", "transaction_marker", "group_metadata", "log_event"
SURVEYS = "cluster_snapshot"
BRONZE = (COMMITS, MARKERS, RECORDS, EVENTS, SURVEYS)
Row = dict[str, Any]
_TOPIC, _DEAD = "topic", "disk of the dead leader"
_CONTESTED = "contested"


@dataclass
class Arrival:
    """What comes in before a round is made."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in BRONZE})
    void: str = ""
    """A condition for commits of before that are void since; empty: there are none."""
    void_records: bool = False
    """Whether it is so for records of groups, too."""
    renames: bool = False
    """Whether the broker's log has got another name."""
    compacts: bool = False


def cut(
    chance: random.Random,
    *,
    records: int,
    rounds: int,
    slower: int = 1,
    late_by: int | None = None,
    calm: int = 0,
) -> list[Arrival]:
    """A history, cut into rounds: mostly in order; some records, and whole disks, come late.

    `slower`: it takes so many times as long. `late_by`: the most rounds by which something is late.
    `calm`: in so many rounds at the beginning, nothing is late, nobody dies, and there are no transactions.
    """

    def late_after(usual: int) -> int:
        if usual < calm:
            return usual
        if late_by is None:
            return chance.randrange(calm, rounds)
        return min(rounds - 1, usual + chance.randrange(late_by + 1))

    arrivals = [Arrival() for _ in range(rounds)]
    for partition in range(2):
        for place, table, row in _log(chance, partition, records, slower, calm * records // rounds):
            usual = place * rounds // records
            for copy in _copies(chance, row):
                late = chance.random() < 0.05 or copy["source"] == _DEAD
                number = late_after(usual) if late else usual
                arrivals[number].rows[table].append(copy)
    for place, survey in enumerate(surveys := list(_surveys(chance, records, slower))):
        late = chance.random() < 0.1
        usual = place * rounds // len(surveys)
        number = late_after(usual) if late else usual
        arrivals[number].rows[SURVEYS] += survey
    for arrival in arrivals[1:]:
        arrival.compacts = chance.random() < 0.3
        arrival.renames = chance.random() < 0.2
    arrivals[-1].void_records = chance.random() < 0.5
    arrivals[-1].void = f"source = 'disk 1' AND offsets_partition = 0 AND log_offset >= {records // 2}"
    return arrivals


def _log(
    chance: random.Random, partition: int, records: int, slower: int, calm: int
) -> Iterator[tuple[int, str, Row]]:
    """Each with its number among the records. The first `calm` ones are plain."""
    epoch, offset, contested_to = 0, 0, 0
    pending: dict[int, bool] = {}
    heads: dict[tuple[str, int], int] = {}
    groups = _Groups(chance, partition)
    for number in range(records):
        at = NOON + timedelta(minutes=2 * slower * number, seconds=partition)
        place = {"offsets_partition": partition, "log_offset": offset, "log_epoch": epoch, "written": at}
        kind = chance.random()
        if chance.random() < 0.25:
            for table, row in groups.write(place):
                offset = max(offset, row.get("log_offset", 0) + 1)
                yield number, table, row
            continue
        if number < calm:
            kind = 1.0
        if kind < 0.06:
            # Records of the old leader that were never replicated, at the offsets of the new one.
            contested_to = offset + (losses := chance.randrange(3))
            for lost in range(losses):
                left = {**place, "log_offset": offset + lost, "source": _DEAD, "replica": 9}
                yield number, COMMITS, {**left, **_commit(chance, heads, partition, at)}
            epoch += 1
            place["log_epoch"] = epoch
        # Where the dead leader has another record, only epochs tell which one counts.
        place[_CONTESTED] = offset < contested_to
        producer = chance.randrange(2)
        if kind < 0.2 and producer in pending:
            del pending[producer]
            ends = {"producer_id": producer, "producer_epoch": 0, "is_commit": chance.random() < 0.6}
            yield number, MARKERS, {**place, **ends}
        elif kind < 0.4:
            pending[producer] = True
            own = {"is_transactional": True, "producer_id": producer, "producer_epoch": 0}
            yield number, COMMITS, {**place, **_commit(chance, heads, partition, at), **own}
        else:
            yield number, COMMITS, {**place, **_commit(chance, heads, partition, at)}
        offset += 1 + (chance.random() < 0.1)


def _surveys(chance: random.Random, records: int, slower: int) -> Iterator[list[Row]]:
    """One every five minutes, some seconds after a commit."""
    latest = [0, 40]
    for number in range(records * 2 // 5):
        at = NOON + timedelta(minutes=5 * slower * number, seconds=chance.randrange(60))
        name = {"snapshot": f"survey {number:03}", "at": at, "source": "broker 1", "topic": "t"}
        if number == records // 5:
            latest[1] = 0
        rows = []
        for partition in range(2):
            latest[partition] += chance.choice([0, 0, 8, 20])
            own = {"topic": "t", "partition": partition, "at": round(at.timestamp() * 1000)}
            ends = {**own, "earliest": 0, "latest": latest[partition], "stable": latest[partition]}
            rows.append({**name, "kind": "ends", "partition": partition, "body": json.dumps(ends)})
            for group in ("unread", "g00"):
                offset = {**own, "group": group, "offset": max(0, latest[partition] - chance.randrange(30))}
                rows.append(
                    {
                        **name,
                        "kind": "committed",
                        "group": group,
                        "partition": partition,
                        "body": json.dumps(offset),
                    }
                )
        if chance.random() < 0.1:
            minutes = chance.choice([2, 5, 30])
            setting = {"of": "broker 1", "name": "offsets.retention.minutes", "value": str(minutes)}
            rows.append({**name, "kind": "setting", "topic": None, "body": json.dumps(setting)})
        rows += _seen_of_cluster(chance, str(name["snapshot"]), round(at.timestamp() * 1000))
        yield [{**row, "ordinal": ordinal} for ordinal, row in enumerate(rows)]


def _seen_of_cluster(chance: random.Random, snapshot: str, at: int) -> list[Row]:
    """The header of a survey; brokers, leaders of the offsets topic, groups. One broker may be away."""
    seen = Observations()
    away = chance.choice([None, None, None, 2])
    alive = [node for node in (1, 2) if node != away]
    for node in (1, 2):
        is_alive = node != away
        seen.brokers.append(
            BrokerView(node, f"kafka-{node}", 9092, alive=is_alive, at=at, source=f"broker {node}")
        )
    for partition in range(2):
        leader = (
            NO_LEADER if away == partition + 1 and chance.random() < 0.7 else alive[partition % len(alive)]
        )
        replicas = (1, 2) if chance.random() < 0.9 else (2, 1)
        for node in alive:
            view = PartitionView(
                OFFSETS_TOPIC, partition, leader, replicas, tuple(alive), told_by=node, at=at
            )
            seen.partitions.append(view._replace(source=f"broker {node}"))
    groups = tuple(sorted(chance.sample(["g00", "g01", "g10", "unread", "listed only"], 3)))
    seen.listings.append(Listing(alive[0], groups, at=at, source=f"broker {alive[0]}"))
    for group in groups[:2]:
        members = (Member("a", "client-a", "/10.0.0.1"),) if chance.random() < 0.7 else ()
        state = "Stable" if members else "Empty"
        seen.states.append(
            GroupState(group, state, protocol_type="consumer", members=members, at=at, source="broker 1")
        )
    header = Header("c", at - 1_000, at, "kafka-1:9092", answered=len(alive) if chance.random() < 0.95 else 0)
    made: list[Row] = [
        {"kind": "survey", "snapshot": snapshot, "source": snapshot, "body": header_line(header)}
    ]
    rows = survey_rows(seen, {}, cluster="c", snapshot=snapshot)
    return made + [row if header.answered else {**row, "at": None} for row in rows]


class _Groups:
    """Records about the groups of one partition, and lines of a log about them."""

    def __init__(self, chance: random.Random, partition: int) -> None:
        self._chance, self._partition = chance, partition
        self._generations: dict[str, int] = {}
        self._members: dict[str, list[str]] = {}
        self._epoch, self._lines = 0, 0

    def write(self, place: Row) -> Iterator[tuple[str, Row]]:
        if self._chance.random() < 0.25:
            yield from self._newer(place)
            return
        group = f"g{self._partition}{self._chance.randrange(2)}"
        record = {**place, "group": group, "key_type": 2, "protocol": "range"}
        if self._chance.random() < 0.1:
            self._generations[group], self._members[group] = 0, []
            yield RECORDS, {**record, "is_removal": True}
            if self._chance.random() < 0.5:
                yield EVENTS, self._line(group, place, "broker: group-removed", reason="deleted")
            return
        before = self._generations.get(group, 0)
        number = before + self._chance.choice([0, 1, 1, 1, 2])
        members = sorted(self._chance.sample("abcd", self._chance.randrange(4)))
        left = [name for name in self._members.get(group, ()) if name not in members]
        self._generations[group], self._members[group] = number, members
        yield (
            RECORDS,
            {
                **record,
                "is_removal": False,
                "generation": number,
                "protocol_type": "consumer",
                "members": [
                    {
                        "member_id": name,
                        "client_id": f"client-{name}",
                        "client_host": "/10.0.0.1",
                        "session_timeout_ms": 45_000,
                        "subscribed": ["t"],
                        "assigned": [{"topic": "t", "partition": place}],
                    }
                    for place, name in enumerate(members)
                ],
            },
        )
        if self._chance.random() < 0.5:
            why = self._chance.choice(["removing member on LeaveGroup", "adding new member"])
            yield EVENTS, self._line(group, place, "broker: rebalance-started", generation=before, reason=why)
        if self._chance.random() < 0.2:
            yield (
                EVENTS,
                self._line(
                    None,
                    place,
                    "controller: leader-changed",
                    topic=OFFSETS_TOPIC,
                    partition=self._partition,
                    details=[("leader", self._chance.choice(["-1", "1", "2"]))],
                ),
            )
        if left and self._chance.random() < 0.7:
            kind = self._chance.choice(["broker: member-left", "broker: member-expired"])
            yield EVENTS, self._line(group, place, kind, member=left[0])

    def _newer(self, place: Row) -> Iterator[tuple[str, Row]]:
        """A new epoch of a group of KIP-848, all that the coordinator writes for it."""
        self._epoch += 1
        name = self._chance.choice("ab")
        written = [kip848.member(name, "orders"), kip848.epoch(self._epoch)]
        written += [kip848.target(name, kip848.ORDERS, self._epoch % 3), kip848.computed(self._epoch)]
        if self._chance.random() < 0.7:
            written.append(kip848.current(name, self._epoch, kip848.ORDERS, self._epoch % 3))
        for row in kip848.written((0, written), first=place["log_offset"], group=f"k{self._partition}"):
            yield RECORDS, {**row, **place, "log_offset": row["log_offset"]}

    def _line(self, group: str | None, place: Row, kind: str, **more: Any) -> Row:
        self._lines += 1
        line = {"line": self._lines, "text": "", "source": f"broker-{self._partition}.log"}
        return {"at": place["written"] - timedelta(seconds=3), "kind": kind, "group": group, **line, **more}


def _commit(chance: random.Random, heads: dict[tuple[str, int], int], partition: int, at: Any) -> Row:
    position = f"g{partition}{chance.randrange(2)}", chance.randrange(2)
    row = {"group": position[0], "topic": "t", "partition": position[1], "is_transactional": False}
    if chance.random() < 0.08:
        return {**row, "offset": None}
    head = heads.get(position, 0)
    heads[position] = head = max(0, head + chance.choice([0, 1, 5, 10, 20, -15]))
    return {**row, "offset": head, "committed": at, "leader_epoch": chance.choice([None, 3])}


def _copies(chance: random.Random, row: Row) -> Iterator[Row]:
    if "source" in row:
        yield row
        return
    is_contested = row.pop(_CONTESTED, False)
    sources = chance.sample([_TOPIC, "disk 1", "disk 2"], chance.randrange(1, 4))
    for source in sources:
        copy = {**row, "source": source, "replica": None if source == _TOPIC else int(source[-1])}
        if source == _TOPIC and chance.random() < 0.5 and not is_contested:
            copy["log_epoch"] = None
        yield copy
