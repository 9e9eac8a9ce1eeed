"""What a round of groups reads and writes: tails of groups with something new, and the rows that differ.

`group_tails` has the theory. All of it is in memory: new records and lines are few, and tails are short.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kelpie.pipeline.ordering import by_group, is_of, rows_by_group
from kelpie.pipeline.plain_groups import GroupRows, Row, Tail, group_rows
from kelpie.pipeline.rounds.differences import (
    MOST_CONDITIONS,
    Difference,
    among,
    conditions,
    difference_of_few,
)
from kelpie.pipeline.rounds.group_tails import (
    Grown,
    as_row,
    before_of,
    grown,
    in_order,
    is_readable,
    news_of,
    trimmed,
)
from kelpie.pipeline.rounds.seen import Seen, standing
from kelpie.pipeline.standing import once
from kelpie.pipeline.storage.frames import ClusterTables, stored_names
from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.tables import STORED
from kelpie.pipeline.tables.table import CLUSTER
from kelpie.pipeline.transforms.departures import DEPARTURE_KINDS
from kelpie.pipeline.transforms.rebalances import ASSIGNOR, REBALANCE_KINDS
from kelpie.places import Place

RECORDS, EVENTS = "group_metadata", "log_event"
GENERATION, MEMBERSHIP, REBALANCE = "group_generation", "membership_interval", "rebalance"
TOPIC_IDS = "copied_topic_id"
CARRIED_RECORD, CARRIED_EVENT, GROUP_TAIL = "carried_record", "carried_event", "group_tail"
TAILS = (CARRIED_RECORD, CARRIED_EVENT, GROUP_TAIL)
_MADE = (GENERATION, MEMBERSHIP, REBALANCE)
_OPEN = (GENERATION, MEMBERSHIP)
"""Of these, all rows without an end are of the last generation, and so of the tail."""
RECORD = [*stored_names(CARRIED_RECORD), "log_epoch"]
EVENT = [name for name in stored_names(CARRIED_EVENT) if name != ASSIGNOR]
_MOST_READ = 200_000
"""If groups with something new have more records than this, all tables are made as a whole."""
_MOST_DELETED = 2_000
"""So it is, if more rows that have ended are to be replaced one by one."""
_AT_ONCE = 500_000
"""Records of so many rows are in memory, when tails are cut of all records."""


def lines(tables: ClusterTables, files: Sequence[Place], groups: Collection[str] | None = None) -> pa.Table:
    """Lines about members and generations, of all groups or of some."""
    rows = tables.columns_of(EVENTS, files, [*EVENT, "details"], is_told(groups))
    return with_assignor(rows)


def is_told(groups: Collection[str] | None = None) -> pc.Expression:
    told = pc.field("kind").isin([*DEPARTURE_KINDS, *REBALANCE_KINDS]) & pc.field("group").is_valid()
    return told if groups is None else told & is_of(groups)


def with_assignor(rows: pa.Table) -> pa.Table:
    """With the assignor instead of all details."""
    if "details" not in rows.column_names:
        return rows
    assignor = pc.map_lookup(rows["details"].combine_chunks(), ASSIGNOR, "first")
    return rows.drop_columns("details").append_column(ASSIGNOR, assignor.cast(pa.string()))


class News(NamedTuple):
    """What is new of some groups, and what was read before."""

    records: pa.Table
    """New rows of group_metadata."""
    events: pa.Table
    """New lines, as `lines` has them."""
    before: Seen
    seen: Seen

    @property
    def groups(self) -> set[str]:
        return {*self.records["group"].to_pylist(), *self.events["group"].to_pylist()}


class GroupChanges:
    """What a round writes."""

    def __init__(self, tables: ClusterTables, files: Mapping[str, Sequence[Place]], news: News) -> None:
        """`files`: of bronze, as they are now."""
        self._tables, self._files, self._news = tables, files, news
        self.files: dict[str, Sequence[NewFile]] = {}
        self.gone: dict[str, list[str]] = {}
        self.is_too_large = False
        self._names = topic_names(tables, tables.files_now(TOPIC_IDS))
        groups = news.groups
        self._records, self._events = by_group(standing(news.seen, news.records)), by_group(news.events)
        known = tails_of(tables, groups)
        if sum(len(tail.records) for tail in known.values()) > _MOST_READ:
            self.is_too_large = True
            return
        changed: dict[str, Grown] = {}
        for group in groups:
            of_group = self._grown(group, known.get(group, Tail()))
            if of_group is not None:
                changed[group] = of_group
        for group in self._came_back(changed):
            del changed[group]
        whole = self._whole(groups - changed.keys())
        if not self.is_too_large:
            self._write(changed, whole)

    def _grown(self, group: str, tail: Tail) -> Grown | None:
        """None: the group is made again from all its rows."""
        records = news_of(tail, self._records.get(group, ()), self._news.before.ends)
        if records is None or not is_readable(records):
            return None
        return grown(tail, records, self._events.get(group, ()), self._names)

    def _came_back(self, changed: Mapping[str, Grown]) -> set[str]:
        """Groups with a member that was there before the tail."""
        asked_for = {
            (group, name): n for group, each in changed.items() for name, n in each.asked_for.items()
        }
        if not asked_for:
            return set()
        members = pa.array(sorted({name for _, name in asked_for}), pa.string())
        where = is_of({group for group, _ in asked_for}) & pc.field("member_id").isin(members)
        files, columns = self._tables.files_now(MEMBERSHIP), ["group", "member_id"]
        rows = self._tables.columns_of(MEMBERSHIP, files, columns, where)
        stored = Counter(zip(*(rows[name].to_pylist() for name in columns), strict=True))
        return {member[0] for member, count in asked_for.items() if stored[member] > count}

    def _whole(self, groups: Collection[str]) -> dict[str, Tail]:
        """All records of groups, and all lines about them."""
        if not groups:
            return {}
        rows = self._tables.columns_of(RECORDS, self._files[RECORDS], RECORD, is_of(groups))
        records = by_group(standing(self._news.seen, rows))
        events = by_group(lines(self._tables, self._files[EVENTS], groups))
        found = {
            group: Tail(news_of(Tail(), records.get(group, ()), {}) or (), events.get(group, ()))
            for group in groups
        }
        self.is_too_large = rows.num_rows > _MOST_READ or not all(
            is_readable(tail.records) for tail in found.values()
        )
        return found

    # What is written.

    def _write(self, changed: Mapping[str, Grown], whole: Mapping[str, Tail]) -> None:
        old = {group: each.old for group, each in changed.items()}
        new = {group: each.new for group, each in changed.items()}
        new |= {group: group_rows(tail.records, tail.events, self._names) for group, tail in whole.items()}
        for name in _MADE:
            before = [self._table(name, old)]
            if whole:
                stored = self._tables.columns_of(
                    name, self._tables.files_now(name), stored_names(name), is_of(whole)
                )
                before.append(self._tables.declared(name, stored))
            self._replace(name, pa.concat_tables(before), self._table(name, new))
        short = {group: trimmed(each.tail, self._names) for group, each in changed.items()}
        anew = {group: trimmed(tail, self._names) for group, tail in whole.items()}
        anew |= {group: tail for group, tail in short.items() if tail is not changed[group].tail}
        more = {
            group: Tail(self._new_records(each), self._events.get(group, ()))
            for group, each in changed.items()
            if group not in anew
        }
        self.files |= written_tails(self._tables, {**more, **anew})
        if anew:
            self.gone |= {name: [among("group", anew)] for name in TAILS}

    def _new_records(self, of: Grown) -> Sequence[Row]:
        ends = self._news.before.ends
        return [row for row in of.tail.records if row["log_offset"] > ends.get(row["offsets_partition"], -1)]

    def _table(self, name: str, groups: Mapping[str, GroupRows]) -> pa.Table:
        cluster = self._tables.cluster
        rows = [
            {CLUSTER: cluster, "group": group, **row}
            for group, each in groups.items()
            for row in {
                GENERATION: each.generations,
                MEMBERSHIP: each.memberships,
                REBALANCE: each.rebalances,
            }[name]
        ]
        return pa.Table.from_pylist(rows, STORED[name].schema)

    def _replace(self, name: str, old: pa.Table, new: pa.Table) -> None:
        table, differ = STORED[name], difference_of_few(old, new)
        where: list[str] = []
        if differ.went.num_rows > MOST_CONDITIONS and name in _OPEN:
            is_open = pc.field("ended").is_null()
            groups = differ.went.filter(is_open)["group"].unique().to_pylist()
            where.append(f'"ended" IS NULL AND {among("group", groups)}')
            goes = is_open & is_of(groups)
            came = pa.concat_tables([differ.came.filter(~goes), new.filter(goes)])
            differ = Difference(came, differ.went.filter(~is_open))
        self.is_too_large |= differ.went.num_rows > _MOST_DELETED
        for start in range(0, differ.went.num_rows, MOST_CONDITIONS):
            where += conditions(table, differ.went.slice(start, MOST_CONDITIONS))
        self.files[name] = self._tables.write(table, differ.came)
        if where:
            self.gone[name] = where


# What is carried.


def topic_names(tables: ClusterTables, files: Sequence[Place]) -> dict[str, str]:
    """Names of topics by id, as records write ids. `files`: of copied_topic_id."""
    rows = tables.columns_of(TOPIC_IDS, files, stored_names(TOPIC_IDS))
    ids = (text.translate(_SHOWN) for text in rows["body"].to_pylist())
    return dict(zip(ids, rows["topic"].to_pylist(), strict=True))


_SHOWN = str.maketrans({"+": "-", "/": "_", "=": None})


def tails_of(tables: ClusterTables, groups: Collection[str]) -> dict[str, Tail]:
    """As the last round has left them."""

    def carried(name: str) -> dict[str, list[Row]]:
        return by_group(tables.columns_of(name, tables.files_now(name), stored_names(name), is_of(groups)))

    records, events, heads = map(carried, TAILS)
    found = {}
    for group in {*records, *events}:
        tail = Tail(in_order(records.get(group, ())), events.get(group, ()))
        head = heads.get(group)
        found[group] = tail if head is None else tail._replace(before=before_of(head[0]))
    return found


def all_tails(
    tables: ClusterTables, files: Mapping[str, Sequence[Place]], seen: Seen, ids: Sequence[NewFile]
) -> dict[str, Sequence[NewFile]]:
    """New files of what is carried, made of all records and lines. `ids`: new files of copied_topic_id."""
    counts = rows_by_group(tables.columns_of(RECORDS, files[RECORDS], ["group"]))
    folder = tables.lake.path(STORED[TOPIC_IDS])
    names = topic_names(tables, [folder / file.path for file in ids])
    events = by_group(lines(tables, files[EVENTS]))
    made: dict[str, list[NewFile]] = {name: [] for name in TAILS}
    for groups in _in_parts(counts):
        where = None if len(groups) == len(counts) else is_of(groups)
        rows = once(standing(seen, tables.columns_of(RECORDS, files[RECORDS], RECORD, where)))
        records = by_group(rows)
        tails = {
            group: trimmed(Tail(in_order(records[group]), events.pop(group, ())), names) for group in groups
        }
        for name, parts in written_tails(tables, tails).items():
            made[name] += parts
    only_lines = {group: Tail((), of_group) for group, of_group in events.items()}
    for name, parts in written_tails(tables, only_lines).items():
        made[name] += parts
    return dict(made)


def _in_parts(counts: Mapping[str, int]) -> Iterable[list[str]]:
    """Groups that have so many records together."""
    part: list[str] = []
    rows = 0
    for group, count in counts.items():
        part.append(group)
        rows += count
        if rows >= _AT_ONCE:
            yield part
            part, rows = [], 0
    if part:
        yield part


def written_tails(tables: ClusterTables, tails: Mapping[str, Tail]) -> dict[str, list[NewFile]]:
    """New files with these records and lines."""
    rows: dict[str, list[Row]] = {name: [] for name in TAILS}
    for group, tail in tails.items():
        rows[CARRIED_RECORD] += tail.records
        rows[CARRIED_EVENT] += tail.events
        if tail.before.began is not None:
            rows[GROUP_TAIL].append(as_row(group, tail.before))
    return {
        name: tables.write(
            STORED[name],
            pa.Table.from_pylist([{**row, CLUSTER: tables.cluster} for row in of_table], STORED[name].schema),
        )
        for name, of_table in rows.items()
    }
