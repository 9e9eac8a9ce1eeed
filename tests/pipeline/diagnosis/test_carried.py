"""What rounds carry for the rules: leaving out old rows now, or all at once in the end, is the same."""

import random
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from kelpie.pipeline.diagnosis import recent
from kelpie.pipeline.diagnosis.generations import RECORD, generation_rows
from kelpie.pipeline.diagnosis.kept_snapshots import kept
from kelpie.pipeline.diagnosis.recent import judged_commits, recent_commits, recent_events
from kelpie.pipeline.sources.snapshots.chosen import PART, choice_of, chosen_rows, in_memory, rows_of_cluster
from kelpie.pipeline.tables import STORED
from tests.pipeline.rounds.histories import SURVEYS, cut
from tests.pipeline.rows import at, commit


def table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"cluster": "c", **row} for row in rows], STORED[name].schema)


def texts(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def test_newest_commits_of_each_position_count() -> None:
    """A position that rests keeps the few last ones; one at work those of the last hours, up to a limit."""
    rests = [commit(number * 86_400, number, group="rests", offsets_partition=1) for number in range(30)]
    works = [commit(number * 60, number, group="works", offsets_partition=1) for number in range(1_000)]
    left = judged_commits(recent_commits(table("recent_commit", rests + works))).to_pylist()
    assert [row["offset"] for row in left if row["group"] == "rests"] == list(range(10, 30))
    assert [row["offset"] for row in left if row["group"] == "works"] == list(range(800, 1_000))


def test_generations_of_a_week_count_and_the_last_ten() -> None:
    """A group that rebalances daily for a year must not cost more than one that does so for a week."""
    day = 86_400
    record = {"offsets_partition": 1, "key_type": 2, "is_removal": False, "members": []}

    def numbers(*seconds: int) -> list[int]:
        rows = [
            {**record, "group": "g", "log_offset": number, "generation": number, "at": at(second)}
            for number, second in enumerate(seconds)
        ]
        schema = pa.schema([*STORED["group_metadata"].schema, pa.field("at", pa.timestamp("us", "UTC"))])
        records = pa.Table.from_pylist(rows, schema).select(RECORD)
        return [row["place"] for row in generation_rows(records, {}, "c").to_pylist()]

    assert numbers(*range(0, 30 * day, day)) == list(range(20, 30))
    assert numbers(*range(0, 30 * day, day // 2)) == list(range(45, 60))
    assert numbers(*range(500)) == list(range(300, 500))


@pytest.mark.parametrize("seed", range(3))
def test_commits_may_come_in_any_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round has the commits that the last one left, and new ones."""
    monkeypatch.setattr(recent, "MOST_COMMITS", 5)
    chance = random.Random(seed)
    commits = [
        commit(
            number,
            number,
            group=chance.choice("ab"),
            offsets_partition=1,
            committed=at(chance.randrange(90_000)),
        )
        for number in range(60)
    ]
    chance.shuffle(commits)
    whole = table("recent_commit", commits)
    carried = whole.slice(0, 0)
    for start in range(0, 60, 7):
        carried = recent_commits(pa.concat_tables([carried, whole.slice(start, 7)]))
    assert texts(carried) == texts(recent_commits(whole))


def test_lines_of_a_week_count_and_all_that_name_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines without a time are kept: nobody knows how old they are."""
    monkeypatch.setattr(recent, "MOST_EVENTS", 3)
    line = {"kind": "k", "text": "", "source": "s"}
    days = [(0, "g"), (5, "g"), (6, "g"), (7.5, "g"), (7.5, "g"), (0, None), (0, "other")]
    rows = [
        {**line, "line": number, "at": at(0) + timedelta(days=day), "group": group}
        for number, (day, group) in enumerate(days)
    ]
    rows.append({**line, "line": 9, "at": None, "group": "g"})
    whole = table("log_event", rows)
    assert recent_events(whole)["line"].to_pylist() == [2, 3, 4, 5, 6, 9]
    parts = [whole.slice(start, 2) for start in (4, 0, 6, 2)]
    carried = whole.slice(0, 0)
    for part in parts:
        carried = recent_events(pa.concat_tables([carried, part]))
    assert texts(carried) == texts(recent_events(whole))


@pytest.mark.parametrize("seed", range(3))
def test_surveys_that_are_left_out_are_not_missed(seed: int) -> None:
    """Rows that rounds keep tell what all rows tell, however the surveys came, if they came in order."""
    chance = random.Random(seed)
    arrivals = cut(chance, records=150, rounds=1)
    rows = arrivals[0].rows[SURVEYS]
    whole = table("cluster_snapshot", sorted(rows, key=lambda row: str(row["snapshot"])))
    names = sorted(set(whole["snapshot"].to_pylist()))
    carried = whole.slice(0, 0)
    for start in range(0, len(names), 9):
        some = pa.array(names[start : start + 9])
        is_new = pa.compute.is_in(whole["snapshot"], some)
        # In one piece, as a round reads what the last one wrote: a query of thousands of pieces takes long.
        carried = kept(pa.concat_tables([carried, whole.filter(is_new)]), "c").combine_chunks()
    assert texts(carried) == texts(kept(whole, "c"))
    assert PART in carried["kind"].to_pylist()
    assert carried.num_rows < whole.num_rows / 2
    few, all_of_them = in_memory(carried), in_memory(whole)
    choices = [choice_of(read, "c") for read in (few, all_of_them)]
    assert choices[0].used == choices[1].used
    assert choices[0].newest == choices[1].newest
    told, wanted = (
        texts(chosen_rows(read, choice)) for read, choice in zip((few, all_of_them), choices, strict=True)
    )
    assert told == wanted
    seen, expected = (
        [row for row in rows_of_cluster(read, choice) if row["kind"] != "setting"]
        for read, choice in zip((few, all_of_them), choices, strict=True)
    )
    assert sorted(map(repr, seen)) == sorted(map(repr, expected))
