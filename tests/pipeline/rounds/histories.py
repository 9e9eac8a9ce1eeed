"""Random histories of the offsets topic, as rows of bronze tables, cut into rounds in which they come in.

The log of each partition has plain commits that go forward and back, removals, transactions that are
committed, aborted or left open, and elections. A leader that dies may leave records that its successor has
not: the disk of the dead one has them at offsets where the new leader has written others. Each record comes
from one to three replicas, and over the network, where its leader epoch may not be known.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tests.pipeline.rows import NOON

COMMITS, MARKERS = "offset_commit", "transaction_marker"
Row = dict[str, Any]
_TOPIC, _DEAD = "topic", "disk of the dead leader"


@dataclass
class Arrival:
    """What comes in before a round is made."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: {COMMITS: [], MARKERS: []})
    void: str = ""
    """A condition for rows of before that are void since; empty: there are none."""
    compacts: bool = False


def cut(chance: random.Random, *, records: int, rounds: int) -> list[Arrival]:
    """A history, cut into rounds: mostly in order; some records, and whole disks, come late."""
    arrivals = [Arrival() for _ in range(rounds)]
    for partition in range(2):
        log = list(_log(chance, partition, records))
        for place, (table, row) in enumerate(log):
            usual = place * rounds // len(log)
            for copy in _copies(chance, row):
                late = chance.random() < 0.05 or copy["source"] == _DEAD
                number = chance.randrange(rounds) if late else usual
                arrivals[number].rows[table].append(copy)
    for arrival in arrivals[1:]:
        arrival.compacts = chance.random() < 0.3
    arrivals[-1].void = f"source = 'disk 1' AND offsets_partition = 0 AND log_offset >= {records // 2}"
    return arrivals


def _log(chance: random.Random, partition: int, records: int) -> Iterator[tuple[str, Row]]:
    epoch, offset = 0, 0
    pending: dict[int, bool] = {}
    heads: dict[tuple[str, int], int] = {}
    for number in range(records):
        at = NOON + timedelta(minutes=2 * number, seconds=partition)
        place = {"offsets_partition": partition, "log_offset": offset, "log_epoch": epoch, "written": at}
        kind = chance.random()
        if kind < 0.06:
            # Records of the old leader that were never replicated, at the offsets of the new one.
            for lost in range(chance.randrange(3)):
                left = {**place, "log_offset": offset + lost, "source": _DEAD, "replica": 9}
                yield COMMITS, {**left, **_commit(chance, heads, partition, at)}
            epoch += 1
            place["log_epoch"] = epoch
        producer = chance.randrange(2)
        if kind < 0.2 and producer in pending:
            del pending[producer]
            ends = {"producer_id": producer, "producer_epoch": 0, "is_commit": chance.random() < 0.6}
            yield MARKERS, {**place, **ends}
        elif kind < 0.4:
            pending[producer] = True
            own = {"is_transactional": True, "producer_id": producer, "producer_epoch": 0}
            yield COMMITS, {**place, **_commit(chance, heads, partition, at), **own}
        else:
            yield COMMITS, {**place, **_commit(chance, heads, partition, at)}
        offset += 1 + (chance.random() < 0.1)


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
    sources = chance.sample([_TOPIC, "disk 1", "disk 2"], chance.randrange(1, 4))
    for source in sources:
        copy = {**row, "source": source, "replica": None if source == _TOPIC else int(source[-1])}
        if source == _TOPIC and chance.random() < 0.5:
            copy["log_epoch"] = None
        yield copy
