"""The end of each group's history: what a round carries of it, and what new records and lines make of it.

A new record of a group changes the end of its history only: the last generation ends, members come and go,
a rebalance is complete. So a round carries, of each group, the records of its last generations and the lines
about them (its tail), and what was before the first of them: which incarnation it was, and since when its
members were there (`plain_groups.Before`). The rows of the tail are made of this as it was and as it is now,
and what differs is written. What the history of a group costs does not grow with its length.

A tail is cut when it has more than MOST_RECORDS: FEW_GENERATIONS stay. Records of KIP-848 groups follow from
all records before them, and are not cut.

Where something belongs before the tail, the whole group is made again from all its rows: a record that comes
late and differs from the one that was read, a line about an older generation, a member that left before the
tail and is back.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kelpie.pipeline.plain_groups import (
    NOTHING,
    Before,
    GroupRows,
    Life,
    Row,
    Tail,
    generation_rows,
    lines_of,
    lives,
    place_of,
    rows_of,
)
from kelpie.pipeline.transforms.departures import GONE_KINDS, PAUSED, RIGHT_BEFORE_MS
from kelpie.pipeline.transforms.generations import CLASSIC_TYPE

FEW_GENERATIONS = 16
MOST_RECORDS = 64
"""Of one group."""
_RIGHT_BEFORE = timedelta(milliseconds=RIGHT_BEFORE_MS)
_CONTENT = (
    *("written", "key_type", "generation", "protocol_type", "protocol", "leader", "members"),
    *("is_removal", "details"),
)
"""What copies of a record have in common."""


@dataclass(frozen=True, slots=True)
class Grown:
    """A tail with what is new, and its rows as they were and as they are."""

    tail: Tail
    old: GroupRows
    new: GroupRows
    asked_for: Mapping[str, int]
    """Members that came, or of which a line says how they left, and how many rows the tail had of each.

    If the table has more, they have been there before the tail: the group is made again.
    """


def is_readable(records: Iterable[Row]) -> bool:
    """Whether the values of all records were decoded."""
    return all(
        row["is_removal"] or row["key_type"] != CLASSIC_TYPE or row["generation"] is not None
        for row in records
    )


def in_order(records: Iterable[Row]) -> list[Row]:
    return sorted(records, key=_in_log)


def _in_log(row: Row) -> tuple[int, int]:
    return row["offsets_partition"], row["log_offset"]


def news_of(tail: Tail, records: Iterable[Row], read_to: Mapping[int, int]) -> list[Row] | None:
    """The records that were not read before, each once. None: one comes late, and differs.

    `read_to`: the highest offset that was read of each partition.
    """
    known = {_in_log(row): row for row in tail.records}
    new: dict[tuple[int, int], Row] = {}
    for row in records:
        place = _in_log(row)
        if row["log_offset"] > read_to.get(row["offsets_partition"], -1):
            new.setdefault(place, row)
        elif place not in known or any(row[name] != known[place][name] for name in _CONTENT):
            return None
    return [new[place] for place in sorted(new)]


def grown(
    tail: Tail, records: Sequence[Row], events: Sequence[Row], topic_names: Mapping[str, str]
) -> Grown | None:
    """With new records and lines. None: one of them belongs before the tail."""
    before = tail.before
    whole = tail._replace(records=in_order([*tail.records, *records]), events=[*tail.events, *events])
    were = generation_rows(tail.records, topic_names, before)
    known = generation_rows(whole.records, topic_names, before)
    old = rows_of(were, tail.events, before)
    asked_for: dict[str, int] = {}
    if before is not NOTHING:
        first = tail.records[0]["log_offset"]
        if place_of(known[0]) != before.place or known[0]["log_offset"] != first:
            return None
        present = {name for row in known for name in row["member_ids"]}
        if any(_is_old(line, known, before) for line in events) or not before.lives.keys() <= present:
            return None
        if _moves(tail, were, known):
            return None
        rows = Counter(row["member_id"] for row in old.memberships)
        came = {name for row in known[1:] for name in row["member_ids"] if name not in rows}
        asked_for = {name: rows[name] for name in came | _departed(tail.events, events)}
    return Grown(whole, old, rows_of(known, whole.events, before), asked_for)


def _moves(tail: Tail, were: Sequence[Row], known: Sequence[Row]) -> bool:
    """Whether a line that was about something before the tail is about something else now.

    It was read before the record that removed the group: now it is about the group's next incarnation.
    """
    places = zip(lines_of(were, tail.events), lines_of(known, tail.events), strict=True)
    return any(old["place"] <= tail.before.place and new["place"] != old["place"] for old, new in places)


def _departed(before: Iterable[Row], lines: Iterable[Row]) -> set[str]:
    """Members that new lines are about: they left, or the client paused when they did."""
    members = {line["member"] for line in lines if line["kind"] in GONE_KINDS and line["member"] is not None}
    for pause in lines:
        if pause["kind"] == PAUSED and pause["client_id"] is not None:
            names = {line["member"] for line in before if line["kind"] in GONE_KINDS}
            members |= {name for name in names if name and name.startswith(f"{pause['client_id']}-")}
    return members


def _is_old(line: Row, generations: Sequence[Row], before: Before) -> bool:
    """Whether a line may be about something before the tail."""
    assert before.began is not None
    if line["at"] is None or line["at"] < before.began:
        return True
    if line["kind"] == PAUSED:
        return bool(line["at"] <= before.began + _RIGHT_BEFORE)
    return any(row["place"] <= before.place for row in lines_of(generations, [line]))


def trimmed(tail: Tail, topic_names: Mapping[str, str]) -> Tail:
    """With the last generations only, if there are many."""
    records, before = tail.records, tail.before
    if len(records) <= MOST_RECORDS or any(row["key_type"] != CLASSIC_TYPE for row in records):
        return tail
    if not is_readable(records) or len({row["offsets_partition"] for row in records}) > 1:
        return tail
    generations = generation_rows(records, topic_names, before)
    place = _cut(generations, before)
    if place is None:
        return tail
    first, kept = generations[place], generations[place:]
    needed = {
        name for row in kept[1:] if row["incarnation"] == first["incarnation"] for name in row["member_ids"]
    }
    known = {
        life["member_id"]: Life(life["began"], life["first_generation"])
        for life in lives(generations, before)
        if life["last"][0] == first["incarnation"] and life["first_generation"] <= first["generation"]
    }
    of_lives = {name: life for name, life in known.items() if name in needed}
    after = Before(first["incarnation"], first["generation"], first["began"], of_lives)
    rows = [row for row in records if row["log_offset"] >= first["log_offset"]]
    return Tail(rows, _still_needed(tail.events, generations, kept, after), after)


def _cut(generations: Sequence[Row], before: Before) -> int | None:
    """Where all that comes later was written later, and all that came before had ended."""
    for place in range(len(generations) - FEW_GENERATIONS - 1, 0, -1):
        first, earlier, later = generations[place], generations[:place], generations[place + 1 :]
        if (
            first["generation"] > 0
            and place_of(first) > before.place
            and max(row["log_offset"] for row in earlier) < first["log_offset"]
            and min(row["log_offset"] for row in later) > first["log_offset"]
            and max(row["ended"] for row in earlier) <= first["began"]
        ):
            return place
    return None


def _still_needed(
    events: Iterable[Row], generations: Sequence[Row], kept: Iterable[Row], after: Before
) -> list[Row]:
    """Lines about rebalances after the first generation, and about how members of the tail left."""
    assert after.began is not None
    members = {name for row in kept for name in row["member_ids"]}
    since = after.began - 2 * _RIGHT_BEFORE

    def is_needed(line: Row) -> bool:
        if line["at"] is None or line["at"] >= since or line["member"] in members:
            return True
        return any(row["place"] > after.place for row in lines_of(generations, [line]))

    needed = [line for line in events if is_needed(line)]
    departed = [line["at"] for line in needed if line["kind"] in GONE_KINDS and line["at"] is not None]
    needed += [
        line
        for line in events
        if line["kind"] == PAUSED
        and line["at"] is not None
        and line["at"] < since
        and any(abs(line["at"] - at) <= 2 * _RIGHT_BEFORE for at in departed)
    ]
    return needed


def as_row(group: str, before: Before) -> dict[str, Any]:
    """Of the table group_tail."""
    return {
        "group": group,
        "incarnation": before.incarnation,
        "generation": before.generation,
        "began": before.began,
        "lives": [{"member_id": name, **life._asdict()} for name, life in before.lives.items()],
    }


def before_of(row: Mapping[str, Any]) -> Before:
    lives_before = {each["member_id"]: Life(each["began"], each["first_generation"]) for each in row["lives"]}
    return Before(row["incarnation"], row["generation"], row["began"], lives_before)
