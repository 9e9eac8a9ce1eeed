"""Committed offsets that a round carries: with them and commit_timeline, the next one has all it needs."""

import random
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from kelpie.pipeline.rounds.plain_holds import at_looks, held, times_of, to_carry, until
from kelpie.pipeline.storage.frames import stored_names
from kelpie.pipeline.tables import STORED, TABLES
from tests.pipeline.rows import at, commit

_KIND = TABLES["lag"].schema.field("at").type
_NOTHING = STORED["carried_hold"].schema.empty_table().select(stored_names("carried_hold"))


def history(chance: random.Random, first: int, last: int) -> list[dict[str, Any]]:
    """Two groups, each with two partitions, in two offsets partitions. Clocks go back at times."""
    rows, now = [], float(first)
    for place in range(first, last):
        now += chance.choice([0, 0.5, 1, 1, 2, 3, -4])
        group = chance.randrange(2)
        own = {"group": f"g{group}", "offsets_partition": group, "partition": chance.randrange(2)}
        rows.append(commit(place, place, committed=at(now), **own))
    return rows


def timeline(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, TABLES["commit_timeline"].schema)


def looks(*seconds: float) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array([at(each) for each in seconds], _KIND)])


def after(rows: pa.Table, since: Any) -> list[str]:
    """Those that a round makes its rows of."""
    found = [row for row in rows.to_pylist() if row["ended"] is None or row["ended"] > since]
    return sorted(map(repr, found))


@pytest.mark.parametrize("seed", range(40))
def test_what_is_carried_and_what_is_read_again_tell_the_same_as_all_commits(seed: int) -> None:
    """A look comes late; or none does, and more commits come."""
    chance = random.Random(seed)
    rows = history(chance, 0, 60)
    newest = max(row["committed"] for row in rows)
    since = newest - timedelta(seconds=20)
    known = sorted(chance.sample(range(60), 4))
    carried = to_carry(held(_NOTHING, timeline(rows)), since, times_of(looks(*known), since))

    again = timeline([row for row in rows if row["committed"] >= since])
    rebuilt, whole = held(until(carried, since), again), held(_NOTHING, timeline(rows))
    late = times_of(looks(*known, *(chance.uniform(20, 70) for _ in range(5))), since)
    assert after(at_looks(rebuilt, late), since) == after(at_looks(whole, late), since)

    more = history(chance, 70, 100)
    following, whole = held(carried, timeline(more)), held(_NOTHING, timeline(rows + more))
    later = times_of(looks(*known, (newest - at(0)).total_seconds() + 1, 90, 100), since)
    assert after(at_looks(following, later), since) == after(at_looks(whole, later), since)


def test_few_are_carried() -> None:
    """Thousands of commits in the last minute, and one look: each position carries three."""
    rows = [commit(place, place, committed=at(place / 100), partition=place % 2) for place in range(3_000)]
    seen = times_of(looks(15.505), at(10))
    carried = to_carry(held(_NOTHING, timeline(rows)), at(10), seen)
    assert carried.num_rows == 6
