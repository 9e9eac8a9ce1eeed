"""The rows of `cluster_snapshot` that may count in this round or in a later one: what a round carries.

- All rows of files: outputs of tools, configurations, disks, dumps.
- All rows of the surveys that may be chosen (`evidence.snapshot_choice.lasting`).
- Of the other surveys: leaders of the offsets topic and settings wherever they changed, the last leader of
  each partition, and of each group the last committed offsets that were seen; and the headers, for days. The
  header of such a survey has another kind (`PART`), so that nobody takes it for a whole one.

    kept(kept(rows) + more) == kept(rows + more)

holds if all surveys in `more` ended after those in `rows`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelpie.evidence.snapshot_choice import REMEMBERED_MS, is_change, lasting
from kelpie.evidence.snapshot_files import Header
from kelpie.observations.earlier import best_views
from kelpie.observations.encoding import loads
from kelpie.pipeline.ordering import ends, numbers
from kelpie.pipeline.sources.snapshots.chosen import (
    PART,
    among,
    choice_of,
    headers_of,
    in_memory,
    is_of_offsets_topic,
    is_surveyed,
)
from kelpie.pipeline.sources.snapshots.outputs import SURVEY

_ROW = "row"
"""The number of a row in the table."""


def kept(rows: pa.Table, cluster: str) -> pa.Table:
    """`rows`: of one cluster."""
    headers = headers_of(rows.filter(pc.field("kind").isin([SURVEY, PART])))
    numbered = rows.append_column(_ROW, pa.array(np.arange(rows.num_rows)))
    names = pa.array(sorted(lasting(headers)), pa.string())
    is_whole = ~is_surveyed() | pc.field("snapshot").isin(names)
    whole = numbered.filter(is_whole)
    others = numbered.filter(~is_whole)
    if not others.num_rows:
        return rows
    more = {*_turns(numbered, cluster), *_last_committed(numbered)} & set(others[_ROW].to_pylist())
    partly = others.filter(pc.field(_ROW).isin(pa.array(sorted(more), pa.int64())))
    end = max((header.ended for header in headers.values()), default=0)
    named = {name for name, header in headers.items() if header.ended > end - REMEMBERED_MS}
    named.update(partly["snapshot"].unique().to_pylist())
    heads = others.filter(pc.field("kind").isin([SURVEY, PART]) & among(named))
    heads = heads.set_column(
        heads.schema.get_field_index("kind"), "kind", pa.array([PART] * heads.num_rows, pa.string())
    )
    return pa.concat_tables([table.drop_columns(_ROW).cast(rows.schema) for table in (whole, partly, heads)])


def ended(rows: pa.Table) -> list[int]:
    """When the surveys in these rows ended."""
    headers = headers_of(rows.filter(pc.field("kind").isin([SURVEY, PART])))
    return [header.ended for header in headers.values()]


def _turns(rows: pa.Table, cluster: str) -> Iterable[int]:
    """Rows at which a leader or a setting changed; and the last leader of each partition."""
    choice = choice_of(in_memory(rows), cluster)
    order = {name: number for number, name in enumerate(choice.in_order)}
    wanted = (is_of_offsets_topic() | (pc.field("kind") == "setting")) & is_surveyed()
    by_snapshot: dict[str, list[dict[str, Any]]] = {}
    for row in rows.filter(wanted).select(["snapshot", "ordinal", "kind", "body", _ROW]).to_pylist():
        if row["snapshot"] in order:
            by_snapshot.setdefault(row["snapshot"], []).append(row)
    last: dict[int, Any] = {}
    places: dict[int, int] = {}
    settings: dict[tuple[str, str], Any] = {}
    for name in sorted(by_snapshot, key=order.__getitem__):
        of_survey = sorted(by_snapshot[name], key=lambda row: int(row["ordinal"]))
        for row in of_survey:
            if row["kind"] == "setting":
                body = json.loads(row["body"])
                key = body.get("of", ""), body.get("name", "")
                if key not in settings or settings[key] != body.get("value"):
                    settings[key] = body.get("value")
                    yield row[_ROW]
        if name != choice.newest:
            yield from _leaders(of_survey, last, places)
    yield from places.values()


def _leaders(
    rows: Sequence[Mapping[str, Any]], last: dict[int, Any], places: dict[int, int]
) -> Iterable[int]:
    views = {
        id(view): (view, row[_ROW])
        for row in rows
        if row["kind"] == "partition"
        for view in [loads("partition", row["body"])]
    }
    for partition, best in best_views(view for view, _ in views.values()).items():
        place = views[id(best)][1]
        if is_change(last.get(partition), best):
            yield place
        last[partition], places[partition] = best, place


def _last_committed(rows: pa.Table) -> Iterable[int]:
    """Of each group, the committed offsets in the newest snapshot that has some."""
    committed = rows.filter((pc.field("kind") == "committed") & pc.field("group").is_valid())
    if not committed.num_rows:
        return []
    newest = newest_committed(committed)
    return np.asarray(committed[_ROW])[newest].tolist()  # type: ignore[no-any-return]


def newest_committed(committed: pa.Table) -> Any:
    """For each of these rows, whether it is of the newest snapshot that has some of its group."""
    group = _codes(committed["group"])
    snapshot = _codes(committed["snapshot"])
    order = np.lexsort((snapshot, numbers(committed["at"]), group))
    last = ends(group[order])
    newest = np.full(int(group.max()) + 1, -1)
    newest[group[order][last]] = snapshot[order][last]
    return snapshot == newest[group]


def _codes(column: pa.ChunkedArray) -> Any:
    """Numbers in the order of the texts."""
    encoded = column.combine_chunks().cast(pa.string()).dictionary_encode()
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[np.asarray(pc.sort_indices(encoded.dictionary))] = np.arange(len(ranks))
    return ranks[np.asarray(encoded.indices)]


def headers_in(rows: pa.Table) -> dict[str, Header]:
    return headers_of(rows.filter(pc.field("kind") == SURVEY))
