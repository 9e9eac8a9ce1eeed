"""What tasks do for one day of traffic: read Parquet files, compute with columns, write Parquet files.

A day may be larger than memory: samples are read in slices of time, and the last scrapes of a slice are
carried over to the next one. These run in workers; the driver commits the files that they name.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kelpie.cluster.mappings import MappingHistory
from kelpie.pipeline.storage.parquet import Writer
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.table import DAY, HOW
from kelpie.pipeline.traffic.day import Day, Written
from kelpie.pipeline.traffic.evidence import about
from kelpie.pipeline.traffic.gaps import Gap, explained, gaps, joined
from kelpie.pipeline.traffic.growth import COLUMNS, NAMES, as_told, growth
from kelpie.pipeline.traffic.verdicts import (
    APPORTIONED,
    COUNTED,
    EXACT,
    UNKNOWN,
    Place,
    attribute,
    strangers_in,
)

ROWS_AT_ONCE = 500_000
_KEPT_SCRAPES = 2
_ATTRIBUTED, _GAP = TABLES["attributed_traffic"], TABLES["attribution_gap"]
_UNATTRIBUTED, _CLOSING = TABLES["unattributed_traffic"], TABLES["traffic_closing"]
_SAMPLES = TABLES["traffic_sample"]


def _writer(day: Day, table: str, **within: str) -> Writer:
    return Writer(TABLES[table], Path(day.folders[table]), day.cluster, {DAY: day.day, **within})


def close(day: Day) -> Written:
    """Writes the last two scrapes of each broker on a day."""
    head = _read(day.files, ["broker", "at"])
    ends = pc.cast(head["at"], pa.int64())
    distinct = head.set_column(1, "at", ends).group_by(["broker", "at"]).aggregate([])
    last: dict[str, list[int]] = {}
    for row in distinct.sort_by([("at", "descending")]).to_pylist():
        times = last.setdefault(row["broker"], [])
        if len(times) < _KEPT_SCRAPES:
            times.append(row["at"])
    writer = _writer(day, _CLOSING.name)
    first = min((min(times) for times in last.values()), default=0)
    rows = _read(day.files, list(COLUMNS), since=_moment(first))
    kept = [
        rows.filter((pc.field("broker") == broker) & (pc.field("at") >= _moment(min(times))))
        for broker, times in sorted(last.items())
    ]
    if kept:
        writer.write(pa.concat_tables(kept), {})
    return {_CLOSING.name: writer.close()}


def grow(day: Day) -> Written:
    """Writes what was counted: with a group to attributed_traffic, without one to unattributed_traffic."""
    counted = _writer(day, _ATTRIBUTED.name, **{HOW: COUNTED})
    unattributed = _writer(day, _UNATTRIBUTED.name)
    carried = _opening(day.before)
    slices = _slices(day)
    for place, (since, until) in enumerate(slices):
        samples = as_told(_read(day.files, list(COLUMNS), since=since, until=until), told=False)
        together = pa.concat_tables([carried, samples]).unify_dictionaries()
        grown = growth(together, is_last=place == len(slices) - 1)
        counted.write(grown.counted, {})
        unattributed.write(grown.unattributed, {})
        carried = grown.rest
    return {_ATTRIBUTED.name: counted.close(), _UNATTRIBUTED.name: unattributed.close()}


def judge(day: Day, mappings: MappingHistory) -> Written:
    """Writes whose the unattributed deltas are, and the gaps."""
    writers = {how: _writer(day, _ATTRIBUTED.name, **{HOW: how}) for how in (EXACT, APPORTIONED, UNKNOWN)}
    evidence = about(day)
    strangers = frozenset[Place]()
    if sum(pq.read_metadata(file).num_rows for file in day.files) > ROWS_AT_ONCE:
        strangers = strangers.union(*(strangers_in(deltas, evidence) for deltas in _deltas(day.files)))
    pieces: list[Gap] = []
    for deltas in _deltas(day.files):
        attributed = attribute(deltas, evidence, strangers)
        for how, writer in writers.items():
            rows = attributed.rows.filter(pc.field(HOW).cast(pa.string()) == how)
            writer.write(rows.drop_columns([HOW]), {})
        pieces = joined([*pieces, *gaps(deltas, attributed)])
    gap = _writer(day, _GAP.name)
    rows = [explained(piece, mappings) for piece in pieces]
    schema = pa.schema([field for field in _GAP.schema if field.name not in _GAP.partitions])
    gap.write(pa.Table.from_pylist(rows, schema), {})
    files = [file for writer in writers.values() for file in writer.close()]
    return {_ATTRIBUTED.name: files, _GAP.name: gap.close()}


def _opening(before: Sequence[Sequence[str]]) -> pa.Table:
    """The last scrapes of each broker before the day."""
    parts, known = [as_told(_SAMPLES.schema.empty_table(), told=True)], pa.array([], pa.string())
    for files in before:
        rows = as_told(_read(files, list(COLUMNS)), told=True)
        rows = rows.filter(pc.invert(pc.is_in(rows["broker"].cast(pa.string()), known)))
        parts.append(rows)
        known = pa.concat_arrays([known, pc.unique(rows["broker"].cast(pa.string()).combine_chunks())])
    return pa.concat_tables(parts).unify_dictionaries()


def _slices(day: Day) -> list[tuple[datetime, datetime]]:
    """Parts of the day, so many that each has few enough rows if these are spread evenly."""
    midnight = datetime.combine(date.fromisoformat(day.day), datetime.min.time(), UTC)
    rows = sum(pq.read_metadata(file).num_rows for file in day.files)
    count = -(-rows // ROWS_AT_ONCE) or 1
    bounds = [midnight + timedelta(days=1) * place / count for place in range(count + 1)]
    return list(pairwise(bounds))


def _read(
    files: Sequence[str], columns: list[str], since: datetime | None = None, until: datetime | None = None
) -> pa.Table:
    """Rows of these files; names are dictionaries."""
    wanted = []
    if since is not None:
        wanted.append(("at", ">=", since))
    if until is not None:
        wanted.append(("at", "<", until))
    names = [name for name in NAMES if name in columns]
    tables = [
        pq.read_table(
            file,
            columns=columns,
            filters=wanted or None,
            read_dictionary=names,
            partitioning=None,
            use_threads=False,
        )
        for file in files
    ]
    return pa.concat_tables(tables).unify_dictionaries()


def _deltas(files: Sequence[str]) -> Iterator[pa.Table]:
    """Unattributed deltas, some at a time."""
    waiting: list[pa.Table] = []
    for name in files:
        with pq.ParquetFile(name, read_dictionary=["broker", "topic", "label"]) as file:
            for number in range(file.num_row_groups):
                waiting.append(file.read_row_group(number, use_threads=False))
                if sum(table.num_rows for table in waiting) >= ROWS_AT_ONCE:
                    yield pa.concat_tables(waiting).unify_dictionaries()
                    waiting = []
    if waiting:
        yield pa.concat_tables(waiting).unify_dictionaries()


def _moment(micros: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
