"""Days of scrapes of a cluster with KoP whose truth is known: which group fetched what the brokers count.

Time goes in steps of half a scrape interval, so partitions move, and groups come and go, also between two
scrapes. A connection that is new because its partition has moved, or because its broker was restarted, has
lost its label with some chance. Some consumers commit without joining; some have no group at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.parquet import NewFile, Writer
from kelpie.pipeline.tables import TABLES, LakeTable

CLUSTER = "week"
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
STEPS = 2
"""Of a scrape interval."""
JOINS, COMMITS, NOBODY = 0, 1, 2
"""Kinds of readers: members of a group; consumers that assign() and commit; consumers without a group."""
BYTES, A_BATCH = 113, 7
_TOPIC = 10
"""Partitions of a topic."""
_HOMES = 50
_MOMENT = pa.timestamp("us", "UTC")

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Size:
    partitions: int = 500
    days: int = 7
    brokers: int = 4
    scrape_s: int = 60
    moves_a_day: float = 1.0
    """Of each partition."""
    lost: float = 0.25
    """The chance that a new connection has no label."""
    restarts_a_day: float = 0.5
    """Of each broker."""
    commit_every: int = 5
    """Scrape intervals."""
    seed: int = 1


class Week:
    """Who reads what, which broker serves it, and which connections have a label, for all time."""

    def __init__(self, size: Size) -> None:
        self.size, self.random = size, np.random.default_rng(size.seed)
        self.a_day = 86_400 // size.scrape_s * STEPS
        self.steps = self.a_day * size.days
        self.topics = [f"topic-{number}" for number in range(-(-size.partitions // _TOPIC))]
        self._readers()
        moved = self._sometimes(size.partitions, size.moves_a_day)
        start = self.random.integers(0, size.brokers, (size.partitions, 1))
        self.leader: Array = ((start + np.cumsum(moved, axis=1)) % size.brokers).astype(np.int8)
        self.restarted: Array = self._sometimes(size.brokers, size.restarts_a_day)
        self.restarted[:, 1::STEPS] = False  # Right after a scrape, so that all of a span is counted.
        self.up: Array = self._presence()
        self.labelled: Array = self._labels()

    def _readers(self) -> None:
        partition: list[int] = []
        group: list[int] = []
        kind: list[int] = []
        for topic in range(len(self.topics)):
            own = range(topic * _TOPIC, min((topic + 1) * _TOPIC, self.size.partitions))
            kinds = [JOINS] * int(self.random.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))
            kinds += [COMMITS] * int(self.random.random() < 0.05)
            kinds += [NOBODY] * int(self.random.random() < 0.03)
            for each in kinds:
                number = 1 + max(group, default=-1)
                partition += own
                group += [number] * len(own)
                kind += [each] * len(own)
        self.partition, self.group, self.kind = (np.array(each) for each in (partition, group, kind))
        self.groups = [f"group-{number}" for number in range(1 + max(group))]
        self.rate: Array = self.random.integers(20, 200, (len(partition), 1))

    def _sometimes(self, count: int, a_day: float) -> Array:
        happens: Array = self.random.random((count, self.steps)) < a_day / self.a_day
        return happens

    def _presence(self) -> Array:
        """Whether a group is there: most always, some not for hours."""
        up = np.ones((len(self.groups), self.steps), bool)
        for group in range(len(self.groups)):
            for day in range(self.size.days):
                if self.random.random() < 0.15:
                    first = day * self.a_day + int(self.random.integers(0, self.a_day))
                    up[group, first : first + int(self.random.integers(6, self.a_day // 4))] = False
        return up

    def _labels(self) -> Array:
        leader = self.leader[self.partition]
        is_new = self.restarted[leader, np.arange(self.steps)]
        is_new[:, 1:] |= leader[:, 1:] != leader[:, :-1]
        keeps = self.random.random(is_new.shape) >= self.size.lost
        since = np.maximum.accumulate(np.where(is_new, np.arange(self.steps), 0), axis=1)
        labelled: Array = np.take_along_axis(keeps, since, axis=1)
        labelled[self.kind != JOINS] = False
        return labelled

    def day(self, number: int) -> date:
        return (MONDAY + timedelta(days=number)).date()

    def micros(self, steps: Array) -> Array:
        """The moment at which a step ends."""
        step_us = self.size.scrape_s * 1_000_000 // STEPS
        start = int(MONDAY.timestamp()) * 1_000_000
        # One microsecond earlier, so that the last scrape of a day is of this day.
        moments: Array = start + (steps.astype(np.int64) + 1) * step_us - 1
        return moments

    def scrapes(self, number: int) -> Array:
        """The steps at whose end a day's scrapes are made."""
        return np.arange(number * self.a_day, (number + 1) * self.a_day)[STEPS - 1 :: STEPS]

    def flow(self, number: int) -> Array:
        """Messages that each reader fetches in each step of a day; the same whenever it is asked."""
        random = np.random.default_rng((self.size.seed, number))
        steps = slice(number * self.a_day, (number + 1) * self.a_day)
        drawn: Array = random.poisson(self.rate, (len(self.partition), self.a_day))
        return drawn * self.up[self.group, steps]


def write(week: Week, lake: Lake) -> int:
    """The tables that the attribution is made of. Returns the number of samples."""
    files: list[NewFile] = []
    table = TABLES["traffic_sample"]
    lake.open(table)
    for number, samples in enumerate(samples_by_day(week)):
        writer = Writer(table, lake.path(table), CLUSTER, {"day": str(week.day(number))})
        for start in range(0, samples.num_rows, 1 << 17):
            writer.write(samples.slice(start, 1 << 17), {"is_stamped": True})
        files += writer.close()
    lake.add(table, files, application="week", version=1)
    _replace(lake, TABLES["group_generation"], generations(week))
    _replace(lake, TABLES["commit_timeline"], commits(week))
    return sum(file.rows for file in files)


def _replace(lake: Lake, table: LakeTable, rows: pa.Table) -> None:
    lake.open(table)
    writer = Writer(table, lake.path(table), CLUSTER)
    writer.write(rows, {})
    lake.replace(table, CLUSTER, writer.close(), made_of=1)


def samples_by_day(week: Week) -> Iterator[pa.Table]:
    """What the brokers export. A series is there from its first message until its broker restarts."""
    brokers = range(week.size.brokers)
    own = [np.zeros(len(week.partition), np.int64) for _ in brokers]
    lost = [np.zeros(week.size.partitions, np.int64) for _ in brokers]
    for number in range(week.size.days):
        steps = slice(number * week.a_day, (number + 1) * week.a_day)
        flow, labelled = week.flow(number), week.labelled[:, steps]
        leader = week.leader[week.partition, steps]
        parts = []
        for broker in brokers:
            restarted = week.restarted[broker, steps]
            named = flow * ((leader == broker) & labelled)
            nameless = np.zeros((week.size.partitions, week.a_day), np.int64)
            np.add.at(nameless, week.partition, flow * ((leader == broker) & ~labelled))
            values, own[broker] = _counters(named, own[broker], restarted)
            parts.append(
                _samples(week, number, broker, values, partition=week.partition, label=week.group + 1)
            )
            values, lost[broker] = _counters(nameless, lost[broker], restarted)
            everyone = np.arange(week.size.partitions)
            parts.append(
                _samples(week, number, broker, values, partition=everyone, label=np.zeros(len(everyone), int))
            )
        samples = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
        order = np.argsort(samples["at"].cast(pa.int64()).to_numpy(), kind="stable")
        yield samples.take(pa.array(order))


def _counters(flow: Array, before: Array, restarted: Array) -> tuple[Array, Array]:
    """Counters at the end of each scrape interval, and at the end of the day."""
    sums = np.cumsum(flow, axis=1)
    last = np.maximum.accumulate(np.where(restarted, np.arange(flow.shape[1]), -1))
    at_restart = sums[:, last] - flow[:, last]
    values = np.where(last >= 0, sums - at_restart, sums + before[:, None])
    return values[:, STEPS - 1 :: STEPS], values[:, -1]


def _samples(
    week: Week, number: int, broker: int, values: Array, *, partition: Array, label: Array
) -> pa.Table:
    series, scrape = np.nonzero(values)
    count = values[series, scrape]
    at = week.micros(week.scrapes(number))
    sources = [f"broker-{broker}/{number}-{place}.prom" for place in range(len(at))]
    return pa.table(
        {
            "broker": names(np.full(len(series), 0), [f"broker {broker}"]),
            "at": pa.array(at[scrape]).cast(_MOMENT),
            "source": names(scrape, sources),
            "topic": names(partition[series] // _TOPIC, week.topics),
            "partition": pa.array((partition[series] % _TOPIC).astype(np.int32)),
            "group": names(label[series], ["", *week.groups]),
            "messages": pa.array(count),
            "bytes": pa.array(count * BYTES),
            "entries": pa.array(-(-count // A_BATCH)),
        }
    )


def names(numbers: Array, values: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), pa.array(values))


def place_of(week: Week, partition: Array) -> dict[str, pa.Array]:
    return {
        "topic": names(partition // _TOPIC, week.topics),
        "partition": pa.array((partition % _TOPIC).astype(np.int32)),
    }


def generations(week: Week) -> pa.Table:
    """Of groups that join: a new one whenever the group comes or goes, and now and then in between."""
    rows: list[dict[str, Any]] = []
    joined = sorted(set(week.group[week.kind == JOINS].tolist()))
    rebalanced = week.random.random((len(week.groups), week.steps)) < 2 / week.a_day
    for group in joined:
        own = week.partition[week.group == group]
        up = week.up[group]
        changes = rebalanced[group] & up
        changes[1:] |= up[1:] != up[:-1]
        changes[0] = True
        begins = np.flatnonzero(changes)
        began = week.micros(begins - 1)
        for place, step in enumerate(begins.tolist()):
            rows.append(
                {
                    "group": week.groups[group],
                    "incarnation": 0,
                    "generation": place + 1,
                    "began": int(began[place]),
                    "ended": int(began[place + 1]) if place + 1 < len(begins) else None,
                    "roster": _roster(week, own, place) if up[step] else [],
                }
            )
    schema = TABLES["group_generation"].schema
    return pa.Table.from_pylist(rows, pa.schema([schema.field(name) for name in rows[0]]))


def _roster(week: Week, own: Array, turn: int) -> list[dict[str, Any]]:
    """Two members, which change places with every generation."""
    return [
        {
            "member_id": f"member-{member}",
            "client_id": f"client-{member}",
            "assigned": [
                {"topic": week.topics[partition // _TOPIC], "partition": partition % _TOPIC}
                for partition in own[(member + turn) % 2 :: 2].tolist()
            ],
        }
        for member in range(2)
    ]


def commits(week: Week) -> pa.Table:
    """Every few scrape intervals while the group is there, and at the very end."""
    every = week.size.commit_every * STEPS
    steps = np.unique(np.append(np.arange(every - 1, week.steps, every), week.steps - 1))
    offsets = np.zeros((len(week.partition), len(steps)), np.int64)
    before, total = 0, np.zeros((len(week.partition), 1), np.int64)
    for number in range(week.size.days):
        sums = total + np.cumsum(week.flow(number), axis=1)
        mine = np.flatnonzero(steps // week.a_day == number)
        offsets[:, before : before + len(mine)] = sums[:, steps[mine] % week.a_day]
        before, total = before + len(mine), sums[:, -1:]
    commits_here = week.up[week.group][:, steps] & (week.kind != NOBODY)[:, None]
    reader, place = np.nonzero(commits_here)
    committed, offset = week.micros(steps[place]), offsets[reader, place]
    is_first = np.append([True], reader[1:] != reader[:-1])
    previous = np.append([0], offset[:-1])
    at = np.append([0], committed[:-1])
    return pa.table(
        {
            "group": names(week.group[reader], week.groups),
            **place_of(week, week.partition[reader]),
            "offsets_partition": pa.array((week.group[reader] % _HOMES).astype(np.int32)),
            "log_offset": pa.array(np.arange(len(reader))),
            "committed": pa.array(committed).cast(_MOMENT),
            "offset": pa.array(offset),
            "previous_offset": pa.array(previous, mask=is_first),
            "previous_committed": pa.array(at, mask=is_first).cast(_MOMENT),
            "advance": pa.array(offset - previous, mask=is_first),
            "is_transactional": pa.array(np.zeros(len(reader), bool)),
        }
    )
