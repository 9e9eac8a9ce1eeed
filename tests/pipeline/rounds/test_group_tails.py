"""The ends of groups' histories, step by step: they leave what all records and lines leave at once."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from kelpie.pipeline.plain_groups import NOTHING, GroupRows, Tail, group_rows
from kelpie.pipeline.rounds import group_tails
from kelpie.pipeline.rounds.group_changes import RECORD, with_assignor
from kelpie.pipeline.rounds.group_tails import grown, news_of, trimmed
from kelpie.pipeline.rounds.seen import Seen, begins_earlier, standing
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.transforms.generations import CLASSIC_TYPE
from tests.pipeline.rounds.histories import EVENTS, RECORDS, Arrival, cut
from tests.pipeline.rows import NOON

Row = dict[str, Any]


class Groups:
    """All groups of a cluster, as rounds keep them."""

    def __init__(self) -> None:
        self.seen = Seen()
        self.records = pa.table({})
        self.tails: dict[str, Tail] = {}
        self.rows: dict[str, Counter[str]] = {}
        self.ways: Counter[str] = Counter()
        self._lines: dict[str, list[Row]] = {}

    def take_in(self, arrival: Arrival) -> None:
        records = _table(RECORDS, arrival.rows[RECORDS]).select(RECORD)
        events = _by_group(with_assignor(_table(EVENTS, arrival.rows[EVENTS])))
        before, self.seen = self.seen, self.seen.with_rows(records)
        self.records = pa.concat_tables([self.records, records]) if self.records.num_columns else records
        for group, lines in events.items():
            self._lines.setdefault(group, []).extend(lines)
        if begins_earlier(before, self.seen):
            for group in _by_group(self.records).keys() | self._lines.keys():
                self._again(group)
            self.ways["all"] += 1
            return
        new = _by_group(standing(self.seen, records))
        for group in _by_group(records).keys() | events.keys():
            self._step(group, new.get(group, []), events.get(group, []), before)

    def _step(self, group: str, records: list[Row], events: list[Row], before: Seen) -> None:
        tail = self.tails.get(group, Tail())
        new = news_of(tail, records, before.ends)
        made = None if new is None else grown(tail, new, events, {})
        stored = Counter(
            text.split("'")[3]
            for text in (+self.rows.get(group, Counter())).elements()
            if "left_because" in text
        )
        if made is None or any(stored[name] > count for name, count in made.asked_for.items()):
            self.ways["again"] += 1
            self._again(group)
            return
        self.ways["step" if tail.before is NOTHING else "step of a tail"] += 1
        rows = self.rows.setdefault(group, Counter())
        old = _texts(made.old)
        assert old <= rows, "rows that are replaced must be there"
        rows.subtract(old)
        rows.update(_texts(made.new))
        self._keep(group, made.tail)

    def _again(self, group: str) -> None:
        records = standing(self.seen, self.records)
        tail = Tail(
            news_of(Tail(), _by_group(records).get(group, []), {}) or [], [*self._lines.get(group, [])]
        )
        self.rows[group] = _texts(group_rows(tail.records, tail.events, {}))
        self._keep(group, tail)

    def _keep(self, group: str, tail: Tail) -> None:
        self.tails[group] = trimmed(tail, {})
        self.ways["cut"] += self.tails[group] is not tail

    @property
    def expected(self) -> dict[str, Counter[str]]:
        whole = Groups()
        whole.seen, whole.records, whole._lines = self.seen, self.records, self._lines
        for group in _by_group(self.records).keys() | self._lines.keys():
            whole._again(group)
        return whole.rows


def _table(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"cluster": "c", **row} for row in rows], TABLES[name].schema)


def _by_group(rows: pa.Table) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows.to_pylist():
        if row["group"] is not None:
            found.setdefault(row["group"], []).append(row)
    return found


def _texts(rows: GroupRows) -> Counter[str]:
    passed_over = ("last", "goes_on", "place", "settled", "offsets_partition", "is_removal")
    return Counter(
        repr({name: value for name, value in row.items() if name not in passed_over})
        for row in (*rows.generations, *rows.memberships, *rows.rebalances)
    )


def _renamed(arrival: Arrival, minutes: int) -> None:
    """Members have other ids after some time, as restarted ones do: few come back."""

    def name(member_id: str, at: datetime) -> str:
        return f"{member_id}-{(at - NOON) // timedelta(minutes=minutes)}"

    for row in arrival.rows[RECORDS]:
        if row["key_type"] == CLASSIC_TYPE:
            members = row.get("members") or ()
            row["members"] = [
                {**each, "member_id": name(each["member_id"], row["written"])} for each in members
            ]
    for row in arrival.rows[EVENTS]:
        if row.get("member"):
            row["member"] = name(row["member"], row["at"] + timedelta(seconds=3))


@pytest.mark.parametrize("seed", range(10))
def test_tails_leave_what_whole_histories_leave(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that come back, groups that are removed, late lines and records, dead leaders."""
    monkeypatch.setattr(group_tails, "FEW_GENERATIONS", 1 + seed % 4)
    monkeypatch.setattr(group_tails, "MOST_RECORDS", 3 + seed % 5)
    groups = Groups()
    for arrival in cut(random.Random(seed), records=200, rounds=30, calm=seed % 3 * 10):
        if seed % 5:
            _renamed(arrival, 20 * (seed % 5))
        groups.take_in(arrival)
    for group, rows in groups.expected.items():
        have = +groups.rows[group]
        assert have == rows, (group, list(have - rows)[:2], list(rows - have)[:2], groups.ways)
    assert groups.ways["cut"]
    assert groups.ways["step of a tail"] or not seed % 5
