"""What is right about a synthetic week, and how an attribution compares with it.

A delta is *decidable* if, by the truth alone, only one group can have fetched it: all of it came from one
group, which had the partition from a minute before the span to a minute after; and every other reader that
may have been there in this time is seen to have kept its label, on the same broker: it was counted under its
name in the spans before and after, too. So a span at the very beginning or end of all scrapes is decidable
only if nobody else can have read the partition.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from bench.traffic_week import BYTES, JOINS, NOBODY, STEPS, Array, Week, names, place_of
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES


@dataclass
class Score:
    """Deltas without a name, by what became of them."""

    deltas: int = 0
    decidable: int = 0
    right: int = 0
    """Decidable ones that are exact, and whose group is right."""
    wrong: int = 0
    """Deltas that are exact, and whose group is not right, or not all of it."""
    exact: int = 0
    unbalanced: int = 0
    """Partitions and spans whose total is not what was fetched."""

    @property
    def share(self) -> float:
        return self.right / self.decidable if self.decidable else 1.0


def truth_by_day(week: Week) -> Iterator[pa.Table]:
    """Broker, topic, partition, ended, group (null: none), messages, decidable: a row for each reader."""
    for number in range(week.size.days):
        steps = slice(number * week.a_day, (number + 1) * week.a_day)
        nameless = week.flow(number) * ~week.labelled[:, steps]
        leader = week.leader[week.partition, steps]
        decidable = _decidable(week, number)
        for broker in range(week.size.brokers):
            spans = _by_span(nameless * (leader == broker))
            reader, scrape = np.nonzero(spans)
            sharing = _by_partition(week, (spans > 0).astype(np.int64))
            single = sharing[week.partition[reader], scrape] == 1
            group = np.array(week.groups)[week.group[reader]]
            yield pa.table(
                {
                    "broker": names(np.zeros(len(reader)), [f"broker {broker}"]),
                    **_place(week, number, week.partition[reader], scrape),
                    "group": pa.array(group, mask=week.kind[reader] == NOBODY),
                    "messages": pa.array(spans[reader, scrape]),
                    "decidable": pa.array(decidable[reader, scrape] & single),
                }
            )


def totals_by_day(week: Week) -> Iterator[pa.Table]:
    """Topic, partition, ended, messages: all that was fetched, whoever did."""
    for number in range(week.size.days):
        spans = _by_partition(week, _by_span(week.flow(number)))
        partition, scrape = np.nonzero(spans)
        messages = pa.array(spans[partition, scrape])
        yield pa.table({**_place(week, number, partition, scrape), "messages": messages})


def _by_span(flow: Array) -> Array:
    spans: Array = flow.reshape(len(flow), -1, STEPS).sum(axis=2)
    return spans


def _by_partition(week: Week, spans: Array) -> Array:
    sums = np.zeros((week.size.partitions, spans.shape[1]), np.int64)
    np.add.at(sums, week.partition, spans)
    return sums


def _place(week: Week, number: int, partition: Array, scrape: Array) -> dict[str, pa.Array]:
    at = week.micros(week.scrapes(number))
    return {**place_of(week, partition), "ended": pa.array(at[scrape]).cast(pa.timestamp("us", "UTC"))}


def _decidable(week: Week, number: int) -> Array:
    """By reader and scrape interval of a day."""
    pad = max(STEPS, -(-61 * STEPS // week.size.scrape_s))
    firsts = np.arange(number * week.a_day, (number + 1) * week.a_day, STEPS)
    low, high = np.maximum(firsts - pad, 0), np.minimum(firsts + STEPS + pad, week.steps)

    def always(states: Array) -> Array:
        sums = np.concatenate([np.zeros((len(states), 1), int), np.cumsum(states, axis=1)], axis=1)
        held: Array = sums[:, high] - sums[:, low] == high - low
        return held

    up = week.up[week.group]
    stays = np.ones(week.leader.shape, bool)
    stays[:, 1:] = week.leader[:, 1:] == week.leader[:, :-1]
    joined = (week.kind == JOINS)[:, None]
    # Nothing tells when a consumer that does not join is away: its next commit may be of any time before.
    there, absent = always(up), always(~up) & joined
    restarted = week.restarted[week.leader, np.arange(week.steps)]
    on_one_broker = always(stays & ~restarted)[week.partition]
    keeps = there & joined & on_one_broker & always(week.labelled)
    scrape = firsts // STEPS
    # A span is seen to grow if there is a scrape before it: the first span of all is not.
    keeps &= (scrape >= 2) & (scrape < week.steps // STEPS - 1)
    disturbs = np.zeros((week.size.partitions, len(firsts)), np.int64)
    np.add.at(disturbs, week.partition, (~absent & ~keeps).astype(np.int64))
    others = disturbs[week.partition] - (~absent & ~keeps)
    decidable: Array = there & joined & (others == 0)
    if number == 0:
        decidable[:, 0] = False  # Nothing tells since when the first scrape counts.
    return decidable


def compare(week: Week, lake: Lake) -> Score:
    """Every exact row against the truth; every decidable delta against the table; and all totals."""
    score = Score()
    with duckdb.connect() as base:
        base.register("attributed", lake.open(TABLES["attributed_traffic"]).to_pyarrow_dataset())
        for name, parts in (("truth", truth_by_day(week)), ("total", totals_by_day(week))):
            for place, rows in enumerate(parts):
                base.register("rows", rows)
                made = f"insert into {name}" if place else f"create table {name} as"
                base.execute(f"{made} select * from rows")  # noqa: S608 - names from here
        score.deltas, score.decidable = _one(base, _COUNTS)
        score.exact, score.right, score.wrong = _one(base, _JUDGED)
        (score.unbalanced,) = _one(base, _TOTALS.format(bytes=BYTES))
    return score


def _one(base: duckdb.DuckDBPyConnection, query: str) -> tuple[int, ...]:
    row = base.execute(query).fetchone()
    assert row is not None
    return tuple(row)


_COUNTS = """
select count(*), count(*) filter (decidable) from (
  select broker, topic, partition, ended, bool_or(decidable) decidable from truth group by all)
"""
_JUDGED = """
with wanted as (
  select broker, topic, partition, ended, min("group") "group", count(*) readers,
    sum(messages)::bigint messages, bool_or(decidable) decidable
  from truth group by all),
told as (
  select broker, topic, partition, ended, "group", messages, bytes from attributed where how = 'exact')
select count(*),
  count(*) filter (decidable and w."group" = t."group" and readers = 1 and w.messages = t.messages),
  count(*) filter (w."group" is distinct from t."group" or readers <> 1 or w.messages <> t.messages)
from told t left join wanted w using (broker, topic, partition, ended)
"""
_TOTALS = """
with told as (
  select topic, partition, ended, sum(messages)::bigint messages, sum(bytes)::bigint bytes
  from attributed where how <> 'derived' group by all)
select count(*) from total w full join told t using (topic, partition, ended)
where w.messages is distinct from t.messages or w.messages * {bytes} is distinct from t.bytes
"""
