"""Rows of group_generation, membership_interval and rebalance of one group, without Spark.

`transforms.generations`, `departures` and `rebalances` have the theory, and say the same to Spark; a test
holds both to each other. A round makes the end of a group's history again with each record of the group:
then Spark would plan for seconds what is worked out here in milliseconds.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from kelpie.pipeline.transforms.departures import EXPIRED, FENCED, GONE_KINDS, LEFT, PAUSED, RIGHT_BEFORE_MS
from kelpie.pipeline.transforms.departures import POLL_INTERVAL as PAUSED_TOO_LONG
from kelpie.pipeline.transforms.epochs import epochs_of
from kelpie.pipeline.transforms.generations import CLASSIC, CLASSIC_TYPE, CONSUMER
from kelpie.pipeline.transforms.rebalances import ASSIGNOR, CAUSES, ENDS, REBALANCE_KINDS, STARTED

Row = dict[str, Any]
_Place = tuple[int, int]
"""Incarnation and generation."""
_CAUSES = tuple((cause, re.compile(pattern)) for cause, pattern in CAUSES)
_PAUSED_TOO_LONG = re.compile(PAUSED_TOO_LONG)


class Life(NamedTuple):
    """A member since it first appeared in its incarnation of the group."""

    began: datetime
    first_generation: int


@dataclass(frozen=True, slots=True)
class Before:
    """What was before the records that are given: none of its rows changes any more."""

    incarnation: int = 0
    generation: int = -1
    """The generation of the first record; its own rows are made already, and are not made again."""
    began: datetime | None = None
    lives: Mapping[str, Life] = field(default_factory=dict)
    """Of members that were there then or before, and are there in later generations."""

    @property
    def place(self) -> _Place:
        return self.incarnation, self.generation


NOTHING = Before()


class Tail(NamedTuple):
    """The end of a group's history: what rounds carry of it (`rounds.group_tails`)."""

    records: Sequence[Row] = ()
    """Each once, in their order."""
    events: Sequence[Row] = ()
    before: Before = NOTHING


@dataclass(slots=True)
class GroupRows:
    generations: list[Row]
    memberships: list[Row]
    rebalances: list[Row]


def group_rows(
    records: Sequence[Row], events: Sequence[Row], topic_names: Mapping[str, str], before: Before = NOTHING
) -> GroupRows:
    """`records`: of one group, each once, by their place in the log. `events`: lines about it."""
    return rows_of(generation_rows(records, topic_names, before), events, before)


def rows_of(known: Sequence[Row], events: Sequence[Row], before: Before) -> GroupRows:
    """`known`: as `generation_rows` makes them."""
    why = departures(events)
    found = GroupRows(
        [row for row in known if place_of(row) > before.place],
        [row for row in lives(known, before) if row["last"] > before.place or row["goes_on"]],
        [row for row in _rebalances(known, events, why) if row["place"] > before.place],
    )
    for row in found.memberships:
        row["left_because"] = None if row["ended"] is None else why.get(row["member_id"]) or "unknown"
    return found


def place_of(row: Row) -> _Place:
    return row["incarnation"], row["generation"]


# Generations.


def generation_rows(
    records: Sequence[Row], topic_names: Mapping[str, str], before: Before = NOTHING
) -> list[Row]:
    """In their order, with that of the first record."""
    written = [_classic(row) for row in records if row["key_type"] == CLASSIC_TYPE]
    written += [_named(row, topic_names) for row in epochs_of(records)]
    written.sort(key=lambda row: (row["offsets_partition"], row["log_offset"]))
    standing = [row for row, after in _with_next(written) if not _goes_over(row, after)]
    incarnation = before.incarnation
    by_place: dict[_Place, list[Row]] = {}
    for row, after in _with_next(standing):
        if row["is_removal"]:
            incarnation += 1
            continue
        ended = None if after is None else after["began"]
        of_place = by_place.setdefault((incarnation, row["generation"]), [])
        of_place.append({**row, "incarnation": incarnation, "ended": ended})
    return [_newest(by_place[place]) for place in sorted(by_place)]


def _with_next(rows: Sequence[Row]) -> Iterator[tuple[Row, Row | None]]:
    yield from pairwise(rows)
    if rows:
        yield rows[-1], None


def _goes_over(row: Row, after: Row | None) -> bool:
    """Whether a classic group is removed to become one of KIP-848 in the same write."""
    return (
        row["is_removal"]
        and row["kind"] == CLASSIC
        and after is not None
        and after["kind"] == CONSUMER
        and after["began"] == row["began"]
    )


def _newest(rows: Sequence[Row]) -> Row:
    """A generation may be written several times: also when a static member rejoins."""
    newest = max(rows, key=lambda row: row["log_offset"])
    settled = [row["settled"] for row in rows if row["settled"] is not None]
    ids = [member["member_id"] for member in newest["roster"]]
    return {
        **newest,
        "began": min(row["began"] for row in rows),
        "settled": min(settled, default=None),
        "members": len(ids),
        "member_ids": ids,
    }


def _classic(record: Row) -> Row:
    return {
        "offsets_partition": record["offsets_partition"],
        "log_offset": record["log_offset"],
        "generation": record["generation"],
        "is_removal": record["is_removal"],
        "began": record["written"],
        "settled": record["written"],
        "protocol": record["protocol"],
        "leader": record["leader"],
        "roster": [_member(member) for member in record["members"] or ()],
        "kind": CLASSIC,
    }


def _member(member: Row) -> Row:
    names = ("member_id", "instance_id", "client_id", "client_host", "subscribed", "assigned")
    return {**{name: member[name] for name in names}, "epoch": None, "owned": None}


def _named(epoch: Row, names: Mapping[str, str]) -> Row:
    """With names of topics instead of ids."""
    roster = []
    for member in epoch["roster"] or ():
        named = {
            part: member[part]
            and [{**each, "topic": names.get(each["topic"], each["topic"])} for each in member[part]]
            for part in ("assigned", "owned")
        }
        roster.append({**member, **named})
    return {**epoch, "roster": roster, "kind": CONSUMER, "leader": None}


# Members.


def lives(generations: Sequence[Row], before: Before = NOTHING) -> list[Row]:
    """Rows of membership_interval, without why members left.

    With `last`, the place of the last generation, and `goes_on`: the life began before the records that are
    given, or with the first of them.
    """
    by_member: dict[tuple[int, str], list[tuple[Row, Row]]] = {}
    for row in generations:
        for member in row["roster"]:
            by_member.setdefault((row["incarnation"], member["member_id"]), []).append((row, member))
    made = []
    for (incarnation, member_id), present in by_member.items():
        last, member = present[-1]
        began = min(row["began"] for row, _ in present)
        first = present[0][0]["generation"]
        earlier = before.lives.get(member_id) if incarnation == before.incarnation else None
        if earlier is not None:
            began, first = min(began, earlier.began), earlier.first_generation
        owned = member["owned"]
        made.append(
            {
                "member_id": member_id,
                "instance_id": member["instance_id"],
                "client_id": member["client_id"],
                "client_host": member["client_host"],
                "began": began,
                "ended": last["ended"],
                "first_generation": first,
                "last_generation": last["generation"],
                "assigned": member["assigned"] if owned is None else owned,
                "last": place_of(last),
                "goes_on": earlier is not None,
            }
        )
    return made


def departures(events: Iterable[Row]) -> dict[str, str]:
    """How members left, by the first line that says so."""
    pauses: dict[str, list[datetime]] = {}
    departed = []
    for event in events:
        if event["kind"] == PAUSED and event["client_id"] is not None and event["at"] is not None:
            pauses.setdefault(event["client_id"], []).append(event["at"])
        elif event["kind"] in GONE_KINDS and event["member"] is not None and event["at"] is not None:
            departed.append(event)
    first: dict[str, Row] = {}
    for event in departed:
        known = first.get(event["member"])
        if known is None or event["at"] < known["at"]:
            first[event["member"]] = event
    return {member: _how(event, pauses) for member, event in first.items()}


def _how(event: Row, pauses: Mapping[str, Sequence[datetime]]) -> str:
    if event["kind"] == EXPIRED:
        return "expired"
    if event["kind"] == FENCED:
        return "fenced"
    says = event["reason"] is not None and _PAUSED_TOO_LONG.search(event["reason"])
    paused = any(
        event["member"].startswith(f"{client}-")
        and abs(_milliseconds(event["at"]) - _milliseconds(at)) <= RIGHT_BEFORE_MS
        for client, times in pauses.items()
        for at in times
    )
    return "poll-interval" if says or paused else LEFT


# Rebalances.


def _rebalances(generations: Sequence[Row], events: Sequence[Row], why: Mapping[str, str]) -> Iterator[Row]:
    """With `place`: incarnation and generation."""
    sources: dict[_Place, _Sources] = {}
    for row in _from_records(generations):
        sources.setdefault(row["place"], _Sources()).recorded = row
    for row in lines_of(generations, events):
        sources.setdefault(row["place"], _Sources()).logged.append(row)
    for _, of_incarnation in groupby(sorted(sources), key=lambda place: place[0]):
        places = list(of_incarnation)
        made = [sources[place].row(place, why) for place in places]
        later = None
        for row in reversed(made):
            row["ended"] = later if row["ended"] is None else row["ended"]
            later = row["ended"]
        for number, row in enumerate(made):
            recorded = row.pop("from_recorded")
            known = recorded if recorded is not None else row["to_generation"] - 1
            row["from_generation"] = made[number - 1]["to_generation"] if number else known
            row["started"] = row["ended"] if row["began"] is None else row["began"]
            if row["started"] is not None:
                row["duration_ms"] = _duration_ms(row["began"], row["ended"])
                yield row


def _duration_ms(began: datetime | None, ended: datetime | None) -> int | None:
    if began is None or ended is None:
        return None
    return max(0, _milliseconds(ended) - _milliseconds(began))


def _milliseconds(at: datetime) -> int:
    epoch = datetime(1970, 1, 1, tzinfo=at.tzinfo)
    return (at - epoch) // timedelta(milliseconds=1)


@dataclass(slots=True)
class _Sources:
    """What records and lines of logs say of one rebalance."""

    recorded: Row | None = None
    logged: list[Row] = field(default_factory=list)

    def row(self, place: _Place, why: Mapping[str, str]) -> Row:
        recorded = self.recorded or {}
        began = recorded.get("bumped")
        starts = [line for line in self.logged if line["started"] is not None]
        if began is None:
            began = min((line["started"] for line in starts), default=None)
        reason = max(starts, key=lambda line: line["started"])["reason"] if starts else None
        is_newer = bool(recorded.get("is_newer")) or any(line["is_newer"] for line in self.logged)
        ended = recorded.get("recorded")
        if ended is None and not is_newer:
            ended = max((line["ended"] for line in self.logged if line["ended"] is not None), default=None)
        joined, left = recorded.get("joined"), recorded.get("left")
        known = {why[member] for member in left or () if member in why}
        how = max(known - {LEFT}, default=max(known, default=None))
        return {
            "place": place,
            "began": began,
            "ended": ended,
            "from_recorded": recorded.get("from_generation"),
            "to_generation": place[1],
            "cause": _word(reason, how, joined, left, recorded.get("protocol"), is_newer=is_newer),
            "reason": reason,
            "joined": joined,
            "left": left,
            "gave_up": None,
        }


def _from_records(generations: Sequence[Row]) -> Iterator[Row]:
    previous: Row | None = None
    for row in generations:  # By incarnation and generation.
        same_life = previous is not None and previous["incarnation"] == row["incarnation"]
        last, previous = (previous if same_life else None), row
        if row["generation"] <= 0:
            continue
        had = last["member_ids"] if last is not None else []
        is_newer = row["kind"] == CONSUMER
        yield {
            "place": place_of(row),
            "from_generation": last["generation"] if last is not None else None,
            "protocol": row["protocol"],
            "is_newer": is_newer,
            "bumped": row["began"] if is_newer else None,
            "recorded": row["settled"] if is_newer else row["began"],
            "joined": _beyond(row["member_ids"], had),
            "left": _beyond(had, row["member_ids"]),
        }


def _beyond(names: Sequence[str], others: Sequence[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name not in others]


def lines_of(generations: Sequence[Row], events: Iterable[Row]) -> Iterator[Row]:
    """Beginnings and ends in logs of brokers. A line about a beginning names the generation before."""
    until: dict[int, datetime | None] = {}
    for row in generations:
        until[row["incarnation"]] = row["ended"]
    for event in events:
        if event["kind"] not in REBALANCE_KINDS or event["generation"] is None:
            continue
        starts, computed = event["kind"] == STARTED, event[ASSIGNOR] is not None
        is_end = event["kind"] in ENDS and not computed
        yield {
            "place": (_incarnation(until, event["at"]), event["generation"] + (1 if starts else 0)),
            "started": event["at"] if starts or computed else None,
            "ended": event["at"] if is_end else None,
            "reason": event["reason"] if starts else None,
            "is_newer": computed,
        }


def _incarnation(until: Mapping[int, datetime | None], at: datetime | None) -> int:
    """The incarnation of a line of a log: the first that had not ended then."""
    going = [number for number, ended in until.items() if ended is None or (at is not None and ended > at)]
    return min(going, default=max(until, default=-1) + 1)


def _word(
    reason: str | None,
    how: str | None,
    joined: Sequence[str] | None,
    left: Sequence[str] | None,
    protocol: str | None,
    *,
    is_newer: bool,
) -> str:
    of_log = None
    if reason is not None:
        of_log = next((cause for cause, pattern in _CAUSES if pattern.search(reason)), None)
    if of_log == LEFT:
        of_log = how or of_log
    by_members = LEFT if left else "joined" if joined else None
    otherwise = "subscription" if is_newer and joined is not None else None
    word = of_log or how or by_members or otherwise or "unknown"
    same = joined == [] and left == []
    if protocol is not None and "cooperative" in protocol and same and word in ("subscription", "unknown"):
        return "rejoined"
    return word
