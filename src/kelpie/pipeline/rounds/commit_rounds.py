"""commit_timeline in rounds.

The log of an offsets partition is what is followed. A new record is in order if its offset is higher than all
that were read of its partition. Then rows that were made before stay as they are, with one exception: a
transaction that ends now may make a commit count that others of the same position have overtaken. These rows
are open, and made again.

Partitions in which all is in order and no transaction is under way are made without Spark
(`plain_commits`). For all others:

- Carried: of each position the last commit that counted; commits whose transaction has not ended, and those
  that counted after them; markers beyond the last commit, for tables of one batch are filled one after the
  other.
- Known: for each partition how far it was read, and where each leader epoch began. A newer epoch that begins
  in order ends no record that was read before.
- A record that is not in order is mostly a copy of one that was read, from another replica's disk. It changes
  nothing if the other one counts and its epoch is known (`_harmful`). Any other one, and rows that are void
  since, make the partition again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.pipeline.ordering import MOST_ROWS, in_parts
from kelpie.pipeline.rounds.following import Input, Round
from kelpie.pipeline.rounds.plain_commits import made as plain_commits
from kelpie.pipeline.rounds.plain_commits import special
from kelpie.pipeline.rounds.seen import Seen, epoch_rows, seen_in
from kelpie.pipeline.spark.arrow_frames import frame_of_arrow
from kelpie.pipeline.standing import counted
from kelpie.pipeline.storage.frames import ClusterTables, stored_names
from kelpie.pipeline.storage.lake import Snapshot
from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.storage.typed_data import read, written
from kelpie.pipeline.tables import STORED
from kelpie.pipeline.tables.state import WHY
from kelpie.pipeline.tables.table import CLUSTER
from kelpie.pipeline.tables.types import INT, LONG
from kelpie.pipeline.transforms.commits import OPEN, SETTLED, Epochs, carried_commits, timeline
from kelpie.places import Place

COMMITS, MARKERS, TIMELINE = "offset_commit", "transaction_marker", "commit_timeline"
CARRIED, AHEAD = "carried_commit", "carried_marker"
_OF_THE_COPY = {CLUSTER, "source", "replica", "log_epoch"}
"""Columns in which copies of a record differ."""
_PLACE = ["offsets_partition", "log_offset"]
_MOST_PLACES = 1_000
"""Rows that are deleted one by one. If there are more, the rows of the partition are replaced."""


@dataclass(frozen=True, slots=True)
class Position:
    commits: Seen = field(default_factory=Seen)
    markers: Seen = field(default_factory=Seen)


class CommitRounds:
    outputs = (TIMELINE,)
    inputs = (COMMITS, MARKERS)
    state = (CARRIED, AHEAD)

    def whole(self, tables: ClusterTables, inputs: Mapping[str, Snapshot], *, with_state: bool) -> Round:
        if not inputs[COMMITS].files and not with_state:
            return Round({}, anew=self.outputs)
        plain = _all_plain(tables, inputs, with_state=with_state)
        if plain is not None:
            if not with_state:
                return Round(dict(plain.files), anew=self.outputs)
            return Round(dict(plain.files), written(plain.after), anew=(*self.outputs, *self.state))
        commits, markers = (tables.frame_of(name, inputs[name].files) for name in self.inputs)
        files = {TIMELINE: tables.write(STORED[TIMELINE], timeline(commits, markers))}
        if not with_state:
            return Round(dict(files), anew=self.outputs)
        seen = Position(seen_in(Seen(), commits), seen_in(Seen(), markers))
        state = _state(tables, commits, markers, seen, Epochs())
        return Round({**files, **state}, written(seen), anew=(*self.outputs, *self.state))

    def step(self, tables: ClusterTables, inputs: Mapping[str, Input], position: Any) -> Round | None:
        if not any(each.changes for each in inputs.values()):
            return Round({}, position)
        before = read(Position, position)
        plain = _plain(tables, inputs, before)
        if plain is not None and not plain.others:
            return Round(dict(plain.files), written(plain.after), anew=self.state)
        others = None if plain is None else plain.others
        commits = _New(tables, COMMITS, inputs[COMMITS], before.commits, others)
        markers = _New(tables, MARKERS, inputs[MARKERS], before.markers, others)
        again = commits.again | markers.again
        carried = tables.files_now(CARRIED)
        ahead = tables.files_now(AHEAD)
        all_commits = commits.with_carried(tables.frame_of(CARRIED, carried), again)
        all_markers = markers.with_carried(tables.frame_of(AHEAD, ahead), again)
        known = Epochs(
            epoch_rows(tables, before.commits.without(again)),
            epoch_rows(tables, before.markers.without(again)),
        )
        made = timeline(all_commits, all_markers, known)
        rows, gone = _new_rows(tables, made, before.commits, carried, again)
        after = Position(
            seen_in(commits.after.without(again), commits.all_of(again) if again else None),
            seen_in(markers.after.without(again), markers.all_of(again) if again else None),
        )
        state = _state(tables, all_commits, all_markers, after, known)
        files = {TIMELINE: tables.write(STORED[TIMELINE], rows), **state}
        for name, more in plain.files.items() if plain is not None else ():
            files[name] = [*files[name], *more]
        return Round(dict(files), written(after), anew=self.state, gone={TIMELINE: gone})


class _Plain(NamedTuple):
    """What is made without Spark."""

    files: Mapping[str, list[NewFile]]
    """By table."""
    after: Position
    others: frozenset[int]
    """The offsets partitions of which it is not: Spark makes them."""


def _all_plain(tables: ClusterTables, inputs: Mapping[str, Snapshot], *, with_state: bool) -> _Plain | None:
    """Makes the table of all rows. Returns None if Spark has to: there are too many rows, or the next round
    needs the state of transactions.
    """
    if tables.lake.count(STORED[COMMITS], tables.cluster) > MOST_ROWS:
        return None
    rows = tables.columns_of(COMMITS, inputs[COMMITS].files, stored_names(COMMITS))
    has_transactions = bool(inputs[MARKERS].files) or bool(pc.any(rows["is_transactional"]).as_py())
    if with_state and has_transactions:
        return None
    markers = tables.columns_of(MARKERS, inputs[MARKERS].files, stored_names(MARKERS))
    carried = STORED[CARRIED].schema.empty_table()
    files = _plain_files(tables, counted(rows, markers), carried, with_state=with_state)
    return _Plain(files, Position(Seen().with_rows(rows)), frozenset())


def _plain(tables: ClusterTables, inputs: Mapping[str, Input], before: Position) -> _Plain | None:
    """None: Spark makes everything."""
    came, of_markers = inputs[COMMITS].changes, inputs[MARKERS].changes
    if came.went or of_markers.went or came.rows > MOST_ROWS:
        return None
    new = tables.columns_of(COMMITS, came.came, stored_names(COMMITS))
    carried = tables.rows_now(CARRIED)
    marked = tables.columns_of(MARKERS, of_markers.came, ["offsets_partition"])
    ahead = tables.columns_of(AHEAD, tables.files_now(AHEAD), ["offsets_partition"])
    after = before.commits.with_rows(new)
    others = special(new, carried, (marked, ahead), before=before.commits, after=after)
    if others:
        is_plain = ~pc.field("offsets_partition").isin(pa.array(sorted(others), INT))
        new, carried = new.filter(is_plain), carried.filter(is_plain)
    files = _plain_files(tables, new, carried, with_state=True)
    return _Plain(files, Position(after, before.markers), frozenset(others))


def _plain_files(
    tables: ClusterTables, new: pa.Table, carried: pa.Table, *, with_state: bool
) -> dict[str, list[NewFile]]:
    kept: list[pa.Table] = []

    def rows() -> Iterator[pa.Table]:
        for part in in_parts(new, carried):
            made = plain_commits(*part)
            kept.append(made.carried)
            yield made.timeline

    files = {TIMELINE: tables.write_parts(TIMELINE, rows())}
    if with_state:
        files[CARRIED] = tables.write_parts(CARRIED, kept)
    return files


class _New:
    """The new rows of one input."""

    def __init__(
        self, tables: ClusterTables, name: str, of: Input, seen: Seen, others: Collection[int] | None
    ) -> None:
        """`others`: the partitions that are made here; None: all."""
        self._tables, self._name, self._of, self._seen = tables, name, of, seen
        self._others = others
        self.again: set[int] = set()
        """Partitions to make again."""
        self._rows = tables.frame_of(name, of.changes.came)
        if of.changes.went:
            went = tables.frame_of(name, of.changes.went)
            lost = went.exceptAll(self._rows).select("offsets_partition").distinct()
            self.again |= {row["offsets_partition"] for row in lost.collect()}
            self._rows = self._rows.exceptAll(went)
        columns = [*_PLACE, "log_epoch", "written"]
        if of.changes.went:
            places = self._rows.select(*columns).toArrow()
        else:
            places = tables.columns_of(name, of.changes.came, columns)
        self.after = seen.with_rows(places)
        first = places.group_by("offsets_partition").aggregate([("log_offset", "min")]).to_pylist()
        late = {
            row["offsets_partition"]
            for row in first
            if row["log_offset_min"] <= seen.ends.get(row["offsets_partition"], -1)
        }
        late -= self.again
        if late:
            self.again |= self._harmed(places, late)

    def _harmed(self, places: pa.Table, partitions: set[int]) -> set[int]:
        """Those of these partitions, which have late rows, that the late rows change."""
        seen = self._seen
        of_late = reduce(
            or_,
            (
                (pc.field("offsets_partition") == each) & (pc.field("log_offset") <= seen.ends[each])
                for each in partitions
            ),
        )
        times = places.filter(of_late)["written"]
        near = F.col("offsets_partition").isin(*partitions)
        if not times.null_count:  # Copies of a record have the same time.
            first, last = pc.min_max(times).as_py().values()
            near &= F.col("written").between(F.lit(first), F.lit(last))
        new = self._rows.where(near)
        old = self._tables.frame_of(self._name, self._of.now.files).where(near).exceptAll(new)
        late = new.where(F.col("log_offset") <= _of_partition(seen.ends))
        harmful = _harmful(late, old, _judged_epochs(self._tables, seen)).select("offsets_partition")
        return {row["offsets_partition"] for row in harmful.distinct().collect()}

    def with_carried(self, carried: DataFrame, again: Collection[int]) -> DataFrame:
        """What is carried and what is new; of partitions that are made again, everything."""
        of_others = ~F.col("offsets_partition").isin(*again)
        in_order = self._rows.where(F.col("log_offset") > _of_partition(self._seen.ends))
        rows = carried.drop(WHY).unionByName(in_order)
        if self._others is not None:
            rows = rows.where(F.col("offsets_partition").isin(*self._others))
        return rows.where(of_others).unionByName(self.all_of(again)) if again else rows

    def all_of(self, partitions: Collection[int]) -> DataFrame:
        rows = self._tables.frame_of(self._name, self._of.now.files)
        return rows.where(F.col("offsets_partition").isin(*partitions))


def _harmful(late: DataFrame, old: DataFrame, epochs: DataFrame) -> DataFrame:
    """Late rows that change something.

    Not so rows of an epoch that had ended before them, as was known; nor copies of rows that count, if where
    their epoch began was known. `epochs`: offsets_partition, log_epoch, epoch_began, epoch_ended.
    """
    keys = ["offsets_partition", "log_epoch"]
    of_late = late.join(F.broadcast(epochs), keys, "left")
    is_known = F.col("log_epoch").isNull() | (F.col("epoch_began") <= F.col("log_offset"))
    is_known = F.coalesce(is_known, F.lit(False))
    is_void = F.coalesce(F.col("log_offset") >= F.col("epoch_ended"), F.lit(False))
    of_old = old.join(F.broadcast(epochs), keys, "left").where(~is_void)
    content = [name for name in late.columns if name not in _OF_THE_COPY]
    copies = of_old.select(*(F.col(name).alias(f"old_{name}") for name in content))
    same = reduce(and_, (F.col(name).eqNullSafe(F.col(f"old_{name}")) for name in content))
    counts = of_late.where(~(is_known & is_void))
    return (
        counts.where(~is_known)
        .select(*late.columns)
        .unionByName(counts.where(is_known).join(copies, same, "left_anti").select(*late.columns))
    )


def _new_rows(
    tables: ClusterTables, made: DataFrame, before: Seen, carried: Sequence[Place], again: Collection[int]
) -> tuple[DataFrame, list[str]]:
    """The rows to add, and conditions for those that they replace."""
    gone: list[str] = []
    is_new = F.col("log_offset") > _of_partition(before.ends)
    of_others = made.where(~F.col("offsets_partition").isin(*again)) if again else made
    open_rows = tables.columns_of(CARRIED, carried, [*_PLACE, WHY]).filter(
        (pc.field(WHY) != SETTLED) & ~pc.field("offsets_partition").isin(pa.array(again, INT))
    )
    if open_rows.num_rows:
        gone += _conditions(row for row in open_rows.to_pylist() if row[WHY] == OPEN)
        places = frame_of_arrow(tables.spark, open_rows.select(_PLACE)).withColumn("again", F.lit(True))
        flagged = of_others.join(F.broadcast(places), _PLACE, "left")
        rows = flagged.where(is_new | F.col("again")).drop("again").select(*made.columns)
    else:
        rows = of_others.where(is_new)
    if not again:
        return rows, gone
    files = tables.files_now(TIMELINE)
    of_again = F.col("offsets_partition").isin(*again)
    old, fresh = tables.frame_of(TIMELINE, files).where(of_again), made.where(of_again)
    void = (
        old.exceptAll(fresh.select(*old.columns))
        .select(*_PLACE)
        .limit(_MOST_PLACES + 1)
        .toArrow()
        .to_pylist()
    )
    if len(void) > _MOST_PLACES:
        numbers = ", ".join(map(str, sorted(again)))
        return rows.unionByName(fresh), [*gone, f"offsets_partition IN ({numbers})"]
    more = fresh.select(*old.columns).exceptAll(old)
    return rows.unionByName(more.select(*made.columns)), gone + _conditions(void)


def _conditions(places: Iterable[Mapping[str, Any]]) -> list[str]:
    by_partition: dict[int, list[int]] = {}
    for row in places:
        by_partition.setdefault(row["offsets_partition"], []).append(row["log_offset"])
    return [
        f"offsets_partition = {partition} AND log_offset IN ({', '.join(map(str, sorted(offsets)))})"
        for partition, offsets in sorted(by_partition.items())
    ]


def _state(
    tables: ClusterTables, commits: DataFrame, markers: DataFrame, seen: Position, epochs: Epochs
) -> dict[str, Any]:
    carried = tables.write(STORED[CARRIED], carried_commits(commits, markers, epochs, WHY))
    folder = tables.lake.path(STORED[CARRIED])
    places = [folder / file.path for file in carried]
    is_open = pc.field(WHY) == OPEN
    opened = tables.columns_of(CARRIED, places, [*_PLACE, WHY], is_open).group_by("offsets_partition")
    # Markers beyond the last commit, and those that say that open commits count.
    needed = dict(seen.commits.ends)
    for row in opened.aggregate([("log_offset", "min")]).to_pylist():
        needed[row["offsets_partition"]] = row["log_offset_min"]
    if not any(end > needed.get(partition, -1) for partition, end in seen.markers.ends.items()):
        return {CARRIED: carried, AHEAD: []}
    ahead = markers.where(F.col("log_offset") > _of_partition(needed)).withColumn(WHY, F.lit("ahead"))
    return {CARRIED: carried, AHEAD: tables.write(STORED[AHEAD], ahead)}


def _of_partition(ends: Mapping[int, int]) -> Column:
    """How far the partition of a row was read."""
    if not ends:
        return F.lit(-1)
    pairs = [F.lit(each) for pair in sorted(ends.items()) for each in pair]
    return F.coalesce(F.try_element_at(F.create_map(*pairs), F.col("offsets_partition")), F.lit(-1))


def _judged_epochs(tables: ClusterTables, seen: Seen) -> DataFrame:
    """offsets_partition, log_epoch, epoch_began, epoch_ended."""
    schema = pa.schema({"offsets_partition": INT, "log_epoch": INT, "epoch_began": LONG, "epoch_ended": LONG})
    rows = [
        dict(zip(schema.names, (partition, epoch, began, seen.ended(partition, epoch)), strict=True))
        for partition, epochs in seen.epochs.items()
        for epoch, began in epochs.items()
    ]
    return frame_of_arrow(tables.spark, pa.Table.from_pylist(rows, schema))
