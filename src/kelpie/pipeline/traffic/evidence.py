"""The evidence that counts for the unattributed deltas of a day, and its digest.

A *place* is a partition that has unattributed deltas on a day, with the time that counts for them. Of the
committed offsets of months, those that say something of a place are few: tasks read the files of
commit_timeline, each once, and write what counts for each day into a folder of that day.

    EVIDENCE/owners/*.parquet                who had which partition, all days together; Spark writes it
    EVIDENCE/commits/day=2026-11-16/*.parquet
"""

import hashlib
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kelpie.pipeline.tables.table import DAY
from kelpie.pipeline.traffic.day import Day
from kelpie.pipeline.traffic.evidence_rows import COMMITTED, EVIDENCE, GRACE_US, known_as
from kelpie.pipeline.traffic.growth import Numbers, codes

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
            file,
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
    """Writes those commits of a file of commit_timeline that say something of the places of a day."""
    rows = pq.read_table(
        file, columns=[*_POSITION, *_COMMIT], read_dictionary=["group", "topic"], partitioning=None
    )
    moved = (pc.field("advance") > 0) | pc.field("previous_offset").is_null()
    rows = rows.filter(pc.field("offset").is_valid() & pc.field("committed").is_valid() & moved)
    ended = rows["committed"].cast(pa.int64()).to_numpy()
    before = rows["previous_committed"].cast(pa.int64()).fill_null(-1).to_numpy()
    began = np.where(before < 0, ended - _FIRST_COMMIT_US, np.minimum(before, ended))
    numbers = {
        place: number
        for number, place in enumerate({place for table in by_day.values() for place in _pairs(table)})
    }
    number = _numbers(rows, numbers)
    for day, table in by_day.items():
        first, last = np.full(len(numbers) + 1, _NEVER), np.full(len(numbers) + 1, _ALWAYS)
        own = np.array([numbers[place] for place in _pairs(table)], np.int64)
        first[own], last[own] = table["first"].to_numpy(), table["last"].to_numpy()
        chosen = np.flatnonzero((ended >= first[number]) & (began <= last[number]))
        if len(chosen):
            _write(Path(folder, COMMITS, f"{DAY}={day}"), _committed(rows, began, ended, chosen))


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


def _write(folder: Path, rows: pa.Table) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / f"{uuid.uuid4()}.parquet", compression="zstd")


def about(day: Day) -> pa.Table:
    """The evidence for the places of a day. Assignments are cut to the time that counts, so that one that
    goes on is the same evidence tomorrow.
    """
    assert day.places is not None
    folder = Path(day.evidence)
    commits = _tables((folder / COMMITS / f"{DAY}={day.day}").glob("*.parquet"))
    owners = pa.concat_tables([EVIDENCE.empty_table(), *_tables((folder / OWNERS).glob("*.parquet"))])
    numbers = {place: number for number, place in enumerate(_pairs(day.places))}
    number = _numbers(owners, numbers)
    first = np.append(day.places["first"].to_numpy(), _NEVER)[number]
    last = np.append(day.places["last"].to_numpy(), _ALWAYS)[number]
    began, ended = (owners[name].cast(pa.int64()).to_numpy() for name in ("began", "ended"))
    chosen = np.flatnonzero((ended >= first) & (began <= last))
    cut = owners.take(pa.array(chosen))
    moment = EVIDENCE.field("began").type
    for name, bound in (("began", np.maximum(began, first)), ("ended", np.minimum(ended, last))):
        place = EVIDENCE.get_field_index(name)
        cut = cut.set_column(place, EVIDENCE.field(name), pa.array(bound[chosen]).cast(moment))
    return pa.concat_tables([cut.cast(EVIDENCE), *commits]).combine_chunks()


def digest(day: Day) -> str:
    """What stands for the evidence of a day, in whatever order its rows were written."""
    rows = about(day).sort_by([(name, "ascending") for name in EVIDENCE.names]).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, EVIDENCE) as stream:
        stream.write_table(rows)
    return hashlib.sha256(sink.getvalue()).hexdigest()


def _tables(files: Iterable[Path]) -> Sequence[pa.Table]:
    return [
        pq.read_table(file, columns=EVIDENCE.names, partitioning=None).cast(EVIDENCE)
        for file in sorted(files)
    ]
