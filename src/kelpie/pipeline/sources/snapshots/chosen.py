"""The rows of `cluster_snapshot` that the doctor uses: the same as of a folder of snapshots.

`evidence.snapshot_choice` chooses snapshots, `observations.earlier` says what counts of an earlier one.
A row of an earlier survey has "earlier " before its kind, one of a survey without answers "failed ".

Functions here get a reader, so that the rows may be in the lake or in memory.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kelpie.evidence.snapshot_choice import Choice, LeaderChanges, choose
from kelpie.evidence.snapshot_files import Header, Torn, parse_header
from kelpie.observations import OFFSETS_TOPIC
from kelpie.observations.earlier import EARLIER_KINDS, seen_in_survey
from kelpie.observations.encoding import KNOWN, dumps, loads
from kelpie.pipeline.sources.snapshots.outputs import EARLIER, FAILED, SURVEY
from kelpie.pipeline.sources.snapshots.surveys import PREFIX
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.moments import instant

PART = "part of survey"
"""The kind of a header in place of "survey": of rows of a survey that rounds have kept without the others."""
GROUP_ROW = ["group", "snapshot", "ordinal", "kind", "body", "source"]
"""The columns that make an observation of a group."""
_TABLE = TABLES["cluster_snapshot"]
_AT_ONCE = 200
"""Snapshots whose leaders are held in memory together."""

Reader = Callable[[pc.Expression], pa.Table]
"""Rows of one cluster in `cluster_snapshot` that meet a condition."""


def in_lake(lake: Lake, cluster: str) -> Reader:
    return lambda where: lake.rows(_TABLE, cluster, where)


def in_memory(rows: pa.Table) -> Reader:
    def read(where: pc.Expression) -> pa.Table:
        return rows.filter(where)

    return read


def choice_of(read: Reader, cluster: str) -> Choice:
    return choose(headers_of(read(pc.field("kind").isin([SURVEY, PART]))), cluster)


def headers_of(rows: pa.Table) -> dict[str, Header]:
    """By name of the snapshot."""
    headers = {}
    for row in rows.select(["snapshot", "body"]).to_pylist():
        try:
            headers[row["snapshot"]] = parse_header(row["body"].encode())
        except Torn:  # A later release wrote it.
            continue
    return headers


def is_surveyed() -> pc.Expression:
    return pc.starts_with(pc.field("snapshot"), PREFIX)


def is_of_offsets_topic() -> pc.Expression:
    return (pc.field("kind") == "partition") & (pc.field("topic") == OFFSETS_TOPIC)


def rows_of_cluster(read: Reader, choice: Choice) -> list[dict[str, Any]]:
    """Rows without a group, in order: first those of files, then those of surveys."""
    of_cluster = pc.field("group").is_null()
    rows = _rows(read, of_cluster & ~is_surveyed())
    if not choice.in_order and not choice.failed:
        return rows
    rows += _leaders(read, [name for name in choice.in_order if name != choice.newest])
    wanted = of_cluster & among(choice.used) | is_surveyed() & (pc.field("kind") == "setting")
    order = {name: number for number, name in enumerate(choice.in_order)}
    chosen = [row for row in _rows(read, wanted) if row["snapshot"] in order]
    chosen.sort(key=lambda row: (order[row["snapshot"]], row["ordinal"]))
    for row in chosen:
        rows += [row] if row["kind"] == "setting" else _marked(row, choice)
    unanswered = of_cluster & among(choice.failed) & (pc.field("kind") == "unasked")
    return rows + [{**row, "kind": f"{FAILED}{row['kind']}"} for row in _rows(read, unanswered)]


def rows_of_groups(
    read: Reader, choice: Choice, kinds: Sequence[str] = (), *, group: str | None = None
) -> list[dict[str, Any]]:
    """Rows of all groups, or of one, that are of these kinds, or of any."""
    of_groups = ~pc.field("group").is_null() if group is None else pc.field("group") == group
    if kinds:
        of_groups = of_groups & pc.field("kind").isin(list(kinds))
    rows = _rows(read, of_groups & (~is_surveyed() | among(choice.used)))
    return [marked for row in rows for marked in _marked(row, choice)]


def _marked(row: dict[str, Any], choice: Choice) -> Iterable[dict[str, Any]]:
    """The row, if it counts; with a mark if it is of an earlier survey."""
    if row["snapshot"] not in choice.earlier:
        return [row]
    return [{**row, "kind": f"{EARLIER}{row['kind']}"}] if row["kind"] in EARLIER_KINDS else []


def chosen_rows(read: Reader, choice: Choice) -> pa.Table:
    """The rows of groups that the doctor uses, with the columns GROUP_ROW."""
    name, kind, of_groups = pc.field("snapshot"), pc.field("kind"), pc.field("group").is_valid()
    newest = read(of_groups & (~is_surveyed() | (name == (choice.newest or ""))))
    earlier = read(of_groups & among(choice.earlier) & kind.isin(list(EARLIER_KINDS)))
    named = read(of_groups & among(choice.failed) & (kind == KNOWN))
    listed, listed_before = _listed(read, choice)
    tables = [newest, _as_earlier(earlier), named]
    chosen = pa.concat_tables([*(table.select(GROUP_ROW).cast(_SCHEMA) for table in tables), listed_before])
    known = {*chosen.filter(kind.isin([KNOWN, f"{EARLIER}{KNOWN}"]))["group"].to_pylist(), *listed}
    is_committed = kind.isin(["committed", f"{EARLIER}committed"])
    missing = known - set(chosen.filter(is_committed)["group"].unique().to_pylist())
    if not missing or not choice.in_order:
        return chosen
    # Known groups without committed offsets in these snapshots: the last snapshot that has them counts, too.
    of_missing = pc.field("group").isin(pa.array(sorted(missing), pa.string()))
    before = read((kind == "committed") & is_surveyed() & ~among(choice.used) & of_missing)
    last = before.group_by("group").aggregate([("snapshot", "max")])
    names = dict(zip(last["group"].to_pylist(), last["snapshot_max"].to_pylist(), strict=True))
    pairs = zip(before["group"].to_pylist(), before["snapshot"].to_pylist(), strict=True)
    is_last = pa.array([names[group] == snapshot for group, snapshot in pairs], pa.bool_())
    rows = _as_earlier(before.filter(is_last)).select(GROUP_ROW)
    return pa.concat_tables([chosen, rows.cast(_SCHEMA)])


_SCHEMA = pa.schema([_TABLE.schema.field(name) for name in GROUP_ROW])


def _listed(read: Reader, choice: Choice) -> tuple[set[str], pa.Table]:
    """Groups that surveys listed; and a row for each that an earlier one listed: the first that did."""
    groups: set[str] = set()
    before: dict[str, Mapping[str, Any]] = {}
    for row in _rows(read, among(choice.used) & (pc.field("kind") == "listing")):
        named = json.loads(row["body"]).get("groups") or ()
        groups.update(named)
        if row["snapshot"] != choice.newest:
            source = seen_in_survey(instant(row["at"]))
            for group in named:
                if group not in before:
                    before[group] = {**row, "group": group, "kind": KNOWN, "source": source}
    return groups, pa.Table.from_pylist(list(before.values()), _SCHEMA)


def _as_earlier(rows: pa.Table) -> pa.Table:
    kinds = pc.binary_join_element_wise(EARLIER, rows["kind"].cast(pa.string()), "")
    return rows.set_column(rows.schema.get_field_index("kind"), "kind", kinds)


def _leaders(read: Reader, names: Sequence[str]) -> list[dict[str, Any]]:
    """Leaders of the offsets topic, wherever they changed."""
    leaders = LeaderChanges()
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        views: dict[str, list[Any]] = {}
        for row in _rows(read, is_of_offsets_topic() & among(some)):
            views.setdefault(row["snapshot"], []).append(loads("partition", row["body"]))
        for name in some:
            leaders.add(views.get(name, ()))
    return [{"kind": "partition", "body": dumps(view)} for view in leaders.rows()]


def among(names: Iterable[str]) -> pc.Expression:
    """Whether a row is of one of these snapshots."""
    return pc.field("snapshot").isin(pa.array(list(names), pa.string()))


def _rows(read: Reader, where: pc.Expression) -> list[dict[str, Any]]:
    table = read(where)
    rows: list[dict[str, Any]] = table.sort_by(
        [("snapshot", "ascending"), ("ordinal", "ascending")]
    ).to_pylist()
    return rows
