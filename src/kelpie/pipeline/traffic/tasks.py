"""What tasks do for one day of traffic: read Parquet files, compute with columns, write Parquet files.

A day may be larger than memory: samples are read in slices of time, and the last scrapes of a slice are
carried over to the next one; what has no group is judged some partitions at a time. These run in workers; the
driver commits the files that they name.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kelpie.cluster.mappings import MappingHistory
from kelpie.pipeline.storage.parquet import NewFile, Writer, readable
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.table import DAY, HOW
from kelpie.pipeline.traffic.buckets import Bucket, batches, buckets
from kelpie.pipeline.traffic.day import Day, Written
from kelpie.pipeline.traffic.evidence import about
from kelpie.pipeline.traffic.gaps import Gap, explained, gaps, joined
from kelpie.pipeline.traffic.growth import COLUMNS, NAMES, as_told, growth
from kelpie.pipeline.traffic.midnight import digest, going_on, settled
from kelpie.pipeline.traffic.verdicts import (
    APPORTIONED,
    COUNTED,
    EXACT,
    UNKNOWN,
    attribute,
)
from kelpie.places import place_of

ROWS_AT_ONCE = 500_000
_KEPT_SCRAPES = 2
_ATTRIBUTED, _GAP = TABLES["attributed_traffic"], TABLES["attribution_gap"]
_UNATTRIBUTED, _CLOSING = TABLES["unattributed_traffic"], TABLES["traffic_closing"]
_OPENING = TABLES["traffic_opening"]
_SAMPLES = TABLES["traffic_sample"]


def _writer(day: Day, table: str, **within: str) -> Writer:
    return Writer(TABLES[table], place_of(day.folders[table]), day.cluster, {DAY: day.day, **within})


def close(day: Day) -> Written:
    """Writes the last two scrapes of each broker on a day, and the first one."""
    times = _times(day.files)
    return {
        _CLOSING.name: _chosen(day, _CLOSING.name, {broker: each[-_KEPT_SCRAPES:] for broker, each in times}),
        _OPENING.name: _chosen(day, _OPENING.name, {broker: each[:1] for broker, each in times}),
    }


def _times(files: Sequence[str]) -> list[tuple[str, list[int]]]:
    """When each broker was scraped, in order. Files are read in parts: a day may be larger than memory."""
    times: dict[str, set[int]] = {}
    for name in files:
        with pq.ParquetFile(readable(name), read_dictionary=["broker"]) as file:
            for number in range(file.num_row_groups):
                rows = file.read_row_group(number, columns=["broker", "at"], use_threads=False)
                for row in rows.group_by(["broker", "at"], use_threads=False).aggregate([]).to_pylist():
                    times.setdefault(row["broker"], set()).add(_micros(row["at"]))
    return [(broker, sorted(each)) for broker, each in sorted(times.items())]


def _chosen(day: Day, table: str, times: Mapping[str, Sequence[int]]) -> list[NewFile]:
    """Writes the samples of some scrapes."""
    writer = _writer(day, table)
    if times:
        every = [at for each in times.values() for at in each]
        rows = _read(day.files, list(COLUMNS), since=_moment(min(every)), until=_moment(max(every) + 1))
        for broker, each in times.items():
            at = pc.field("at")
            within = (at >= _moment(min(each))) & (at <= _moment(max(each)))
            writer.write(rows.filter((pc.field("broker") == broker) & within), {})
    return writer.close()


def midnight(day: Day) -> str:
    """Stands for the groups that keep their labels from the end of a day to the next one."""
    return digest(_going_on(day))


def _going_on(day: Day) -> pa.Array:
    closing, opening = (_plain(files) for files in day.midnight)
    return going_on(closing, opening)


def _plain(files: Sequence[str]) -> pa.Table:
    parts = [_SAMPLES.schema.empty_table().select(list(COLUMNS))]
    parts += [pq.read_table(readable(file), columns=list(COLUMNS), partitioning=None) for file in files]
    rows = pa.concat_tables(parts, promote_options="permissive")
    return rows.filter(pc.field("topic").is_valid() & pc.field("group").is_valid())


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
    steady = _going_on(day)
    found: list[Gap] = []
    for bucket in buckets(day.files):
        deltas = settled(_deltas(day.files, bucket), steady)
        attributed = attribute(deltas, about(day, bucket))
        for how, writer in writers.items():
            rows = attributed.rows.filter(pc.field(HOW).cast(pa.string()) == how)
            writer.write(rows.drop_columns([HOW]), {})
        found += gaps(deltas, attributed)
    gap = _writer(day, _GAP.name)
    rows = [explained(piece, mappings) for piece in joined(found)]
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
    rows = sum(pq.read_metadata(readable(file)).num_rows for file in day.files)
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
            readable(file),
            columns=columns,
            filters=wanted or None,
            read_dictionary=names,
            partitioning=None,
            use_threads=False,
        )
        for file in files
    ]
    return pa.concat_tables(tables).unify_dictionaries()


def _deltas(files: Sequence[str], bucket: Bucket) -> pa.Table:
    """The unattributed deltas of some partitions."""
    parts = [bucket.chosen(rows) for rows in batches(files, names=["broker", "topic", "label"])]
    return pa.concat_tables(parts).unify_dictionaries()


def _micros(at: datetime) -> int:
    return (at - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def _moment(micros: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
