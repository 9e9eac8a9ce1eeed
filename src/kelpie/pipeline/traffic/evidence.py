"""The evidence that counts for the unattributed deltas of a day, and its digest.

A *place* is a partition that has unattributed deltas on a day, with the time that counts for them. Of the
committed offsets of months, those that say something of a place are few: tasks read the files of
commit_timeline, each once, and write what counts for each day into a folder of that day.

    EVIDENCE/owners/*.parquet                who had which partition, all days together; Spark writes it
    EVIDENCE/commits/day=2026-11-16/*.parquet
"""

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kelpie.pipeline.storage.parquet import give_name, readable, unfinished
from kelpie.pipeline.tables.table import DAY
from kelpie.pipeline.traffic.buckets import Bucket, batches, buckets
from kelpie.pipeline.traffic.day import Day
from kelpie.pipeline.traffic.evidence_rows import COMMITTED, EVIDENCE, GRACE_US, known_as
from kelpie.pipeline.traffic.growth import Numbers, codes
from kelpie.places import Place, place_of
from kelpie.places.place import files_in

OWNERS, COMMITS = "owners", "commits"
PLACES = pa.schema({"topic": pa.string(), "partition": pa.int32(), "first": pa.int64(), "last": pa.int64()})
_POSITION = ["group", "topic", "partition"]
_COMMIT = ["committed", "offset", "previous_offset", "previous_committed", "advance"]
_FIRST_COMMIT_US = 86_400_000_000
"""How long before its first commit a group may have begun to read."""
_NEVER, _ALWAYS = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def places(files: Iterable[str]) -> pa.Table:
    """The places of a day, of its unattributed deltas."""
    parts = [PLACES.empty_table()]
    for file in files:
        rows = pq.read_table(
            readable(file),
            columns=["topic", "partition", "began", "ended"],
            read_dictionary=["topic"],
            partitioning=None,
        )
        rows = rows.filter(pc.field("began").is_valid())
        for name in ("began", "ended"):
            rows = rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.int64()))
        spans = rows.group_by(["topic", "partition"]).aggregate([("began", "min"), ("ended", "max")])
        topics = [known_as(name) for name in spans["topic"].cast(pa.string()).to_pylist()]
        first = pc.subtract(spans["began_min"], GRACE_US)
        last = pc.add(spans["ended_max"], GRACE_US)
        columns = [pa.array(topics, pa.string()), spans["partition"], first, last]
        parts.append(pa.table(columns, schema=PLACES))
    both = (
        pa.concat_tables(parts)
        .group_by(["topic", "partition"])
        .aggregate([("first", "min"), ("last", "max")])
    )
    return both.rename_columns(PLACES.names)


def split_commits(file: str, by_day: dict[str, pa.Table], folder: str) -> None:
    """Writes those commits of a file of commit_timeline that say something of the places of a day.

    The names of what it writes are made of that of the file: Spark runs a task again when its executor is
    lost, and may not know that the first attempt had ended.
    """
    name = f"{hashlib.sha256(file.encode()).hexdigest()[:32]}.parquet"
    pairs = {day: _pairs(table) for day, table in by_day.items()}
    numbers = {
        place: number for number, place in enumerate({place for day in pairs.values() for place in day})
    }
    spans = {
        day: _spans(by_day[day], [numbers[place] for place in pairs[day]], len(numbers)) for day in by_day
    }
    writers: dict[str, pq.ParquetWriter] = {}
    written: list[tuple[Path, Place]] = []
    with ExitStack() as opened:
        for commits in batches([file], [*_POSITION, *_COMMIT], ["group", "topic"]):
            for day, rows in _of_days(commits, numbers, spans):
                if day not in writers:
                    path = place_of(folder).joinpath(COMMITS, f"{DAY}={day}", name)
                    here = unfinished(path.with_name(f"{uuid.uuid4()}.parquet"))
                    here.parent.mkdir(parents=True, exist_ok=True)
                    written.append((here, path))
                    writers[day] = opened.enter_context(pq.ParquetWriter(here, EVIDENCE, compression="zstd"))
                writers[day].write_table(rows)
    for here, path in written:
        with suppress(FileExistsError):  # Of another attempt, with the same rows.
            give_name(here, path)


def _spans(places: pa.Table, own: list[int], count: int) -> tuple[Numbers, Numbers]:
    """The time that counts for each place on a day, by number; none for places of other days, and none."""
    first, last = np.full(count + 1, _NEVER), np.full(count + 1, _ALWAYS)
    chosen = np.array(own, np.int64)
    first[chosen], last[chosen] = places["first"].to_numpy(), places["last"].to_numpy()
    return first, last


def _of_days(
    rows: pa.Table, numbers: dict[tuple[str, int], int], spans: dict[str, tuple[Numbers, Numbers]]
) -> Iterator[tuple[str, pa.Table]]:
    """The evidence of each day among some commits."""
    moved = (pc.field("advance") > 0) | pc.field("previous_offset").is_null()
    rows = rows.filter(pc.field("offset").is_valid() & pc.field("committed").is_valid() & moved)
    ended = rows["committed"].cast(pa.int64()).to_numpy()
    before = rows["previous_committed"].cast(pa.int64()).fill_null(-1).to_numpy()
    began = np.where(before < 0, ended - _FIRST_COMMIT_US, np.minimum(before, ended))
    number = _numbers(rows, numbers)
    for day, (first, last) in spans.items():
        chosen = np.flatnonzero((ended >= first[number]) & (began <= last[number]))
        if len(chosen):
            yield day, _committed(rows, began, ended, chosen)


def _pairs(places: pa.Table) -> list[tuple[str, int]]:
    return list(zip(places["topic"].to_pylist(), places["partition"].to_pylist(), strict=True))


def _numbers(rows: pa.Table, numbers: dict[tuple[str, int], int]) -> Numbers:
    """The number of the place of each row; the last one stands for none."""
    topic, topics = codes(rows["topic"])
    partition = rows["partition"].to_numpy().astype(np.int64)
    most = int(partition.max(initial=0)) + 1
    table = np.full(len(topics) * most, len(numbers), np.int64)
    known = {known_as(name): place for place, name in enumerate(topics)}
    for (name, each), number in numbers.items():
        if name in known and each < most:
            table[known[name] * most + each] = number
    return table[topic * most + partition] if len(topic) else topic


def _committed(rows: pa.Table, began: Numbers, ended: Numbers, chosen: Numbers) -> pa.Table:
    mine = rows.select(["topic", "partition", "group", "advance"]).take(pa.array(chosen))
    moment = EVIDENCE.field("began").type
    return pa.table(
        {
            "kind": pa.array([COMMITTED] * len(chosen)),
            "is_certain": pa.array(np.zeros(len(chosen), bool)),
            "topic": mine["topic"].cast(pa.string()),
            "partition": mine["partition"],
            "group": mine["group"].cast(pa.string()),
            "began": pa.array(began[chosen]).cast(moment),
            "ended": pa.array(ended[chosen]).cast(moment),
            "advance": mine["advance"].fill_null(0),
        }
    ).cast(EVIDENCE)


def about(day: Day, bucket: Bucket) -> pa.Table:
    """The evidence for the places of a day that are in a bucket. Assignments are cut to the time that counts,
    so that one that goes on is the same evidence tomorrow.
    """
    assert day.places is not None
    folder, places = place_of(day.evidence), bucket.chosen(day.places)
    numbers = {place: number for number, place in enumerate(_pairs(places))}
    first = np.append(places["first"].to_numpy(), _NEVER)
    last = np.append(places["last"].to_numpy(), _ALWAYS)
    parts = [EVIDENCE.empty_table()]
    for owners in _rows(folder / OWNERS):
        number = _numbers(owners, numbers)
        parts.append(_cut(owners, first[number], last[number]))
    parts += [bucket.chosen(commits) for commits in _rows(folder / COMMITS / f"{DAY}={day.day}")]
    return pa.concat_tables(parts).combine_chunks()


def _cut(owners: pa.Table, first: Numbers, last: Numbers) -> pa.Table:
    """Those assignments that were within a time, and no more of them."""
    began, ended = (owners[name].cast(pa.int64()).to_numpy() for name in ("began", "ended"))
    chosen = np.flatnonzero((ended >= first) & (began <= last))
    cut = owners.take(pa.array(chosen))
    moment = EVIDENCE.field("began").type
    for name, bound in (("began", np.maximum(began, first)), ("ended", np.minimum(ended, last))):
        place = EVIDENCE.get_field_index(name)
        cut = cut.set_column(place, EVIDENCE.field(name), pa.array(bound[chosen]).cast(moment))
    return cut.cast(EVIDENCE)


def digest(day: Day) -> str:
    """What stands for the evidence of a day, in whatever order its rows were written."""
    together = hashlib.sha256()
    for bucket in buckets(day.files):
        rows = about(day, bucket).sort_by([(name, "ascending") for name in EVIDENCE.names]).combine_chunks()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, EVIDENCE) as stream:
            stream.write_table(rows)
        together.update(sink.getvalue())
    return together.hexdigest()


def _rows(folder: Place) -> Iterator[pa.Table]:
    files = sorted(files_in(folder, "*.parquet"), key=str)
    return (rows.cast(EVIDENCE) for rows in batches(files, EVIDENCE.names))
