"""Evidence on a real S3 server and on real HDFS: files are found and read there as they are in a folder."""

import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kelpie.evidence.archives import Budget
from kelpie.evidence.files import Search
from kelpie.evidence.recognition import Kind
from kelpie.evidence.snapshot_files import Header, pack, read_snapshot
from kelpie.observations import BrokerView, Observations
from kelpie.pipeline.sources.inventory import LAST, Inventory, known_files, look, plan, take_inventory
from kelpie.pipeline.sources.logs.identity import begins_with, state_of
from kelpie.pipeline.sources.logs.ranges import read_range
from kelpie.pipeline.sources.segments.files import FILLED
from kelpie.pipeline.storage.lake import Lake
from kelpie.places import Place, RemotePath
from tests.pipeline.sources.logs.log_texts import mixed
from tests.pipeline.sources.segments.segments import CLUSTER, Here, batches, ingest, segment

pytestmark = pytest.mark.real
STORES = ["s3", pytest.param("hdfs", marks=pytest.mark.wide)]
LOG = b"\n".join(mixed(7, 400))


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> RemotePath:
    folder = request.getfixturevalue(request.param)
    assert isinstance(folder, RemotePath)
    return folder


def put(folder: Path, store: RemotePath) -> None:
    """All files of a folder, under the same names."""
    for path in folder.rglob("*"):
        if path.is_file():
            store.joinpath(*path.relative_to(folder).parts).write_bytes(path.read_bytes())


def packed_tar(**members: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


def packed_zip(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a folder of evidence may hold, and what must not be read there."""
    folder = tmp_path / "evidence"
    segment(folder / "broker-1", batches(0, 3))
    survey = Observations(brokers=[BrokerView(1, "kafka-1", 9092)])
    files = {
        "broker-1/meta.properties": b"version=1\nnode.id=1\ncluster.id=abc\n",
        "logs/app.log": LOG,
        "logs/rotated.log.gz": gzip.compress(LOG),
        "logs/more.log.xz": lzma.compress(LOG),
        "case.tar.xz": lzma.compress(packed_tar(first=LOG, second=LOG[:500])),
        "case.zip": packed_zip(first=LOG),
        "broken.tar": packed_tar(first=LOG)[:700],
        "survey-abc-20261117T000000.000Z.jsonl.gz": pack(Header("abc", 1, 2), survey),
        ".survey-abc-20261117T000001.000Z.jsonl.gz.tmp": b"half",
        "x y%20ä#?/it's.log": LOG,
        "empty": b"",
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def inventory_of(place: Place, room: Path) -> Inventory:
    room.mkdir()
    return take_inventory([place], Search(room, Budget()), room)


def test_files_of_a_store_are_those_of_a_folder(store: RemotePath, folder: Path, tmp_path: Path) -> None:
    """Names, kinds, sizes and bytes; what archives hold; and why a file is of no use."""
    put(folder, store)
    (store / ".kelpie-being-written").write_bytes(b"half")
    here = inventory_of(folder, tmp_path / "unpacked here")
    there = inventory_of(store, tmp_path / "unpacked there")
    assert len(here.items) > 8
    told = [
        [(item.file.name, item.kinds, item.reason, item.encoding, item.file.size) for item in found.items]
        for found in (here, there)
    ]
    assert told[1] == told[0]
    for one, other in zip(here.items, there.items, strict=True):
        assert one.file.path.read_bytes() == other.file.path.read_bytes()
    assert there.unopened == here.unopened
    assert {item.path for item in there.items if "tar" not in item.path and "zip" not in item.path} >= {
        f"{store}/logs/app.log",
        f"{store}/x y%20ä#?/it's.log",
    }


def test_surveys_on_a_store_that_were_taken_in_are_not_opened_again(
    store: RemotePath, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of `kelpie collect` holds thousands; one that has changed is opened."""
    put(folder, store)
    lake, room = Lake(tmp_path / "tables"), tmp_path / "room"
    room.mkdir()
    first = look([store], room, known_files(lake, CLUSTER))
    (batch,) = plan(lake, CLUSTER, first)
    assert known_files(lake, CLUSTER) == {}, "its batch is not complete"
    lake.append_rows(LAST, CLUSTER, [], application=batch.application, version=batch.number)
    known = known_files(lake, CLUSTER)
    opened: list[str] = []
    plain = RemotePath.open

    def watched(path: RemotePath, *how: Any) -> Any:
        opened.append(path.name)
        return plain(path, *how)

    monkeypatch.setattr(RemotePath, "open", watched)
    again = look([store], room, known)
    assert [item.identity for item in again.items] == [item.identity for item in first.items]
    assert [item.kinds for item in again.items] == [item.kinds for item in first.items]
    assert plan(lake, CLUSTER, again) == []
    (survey,) = [item for item in first.items if Kind.SURVEY in item.kinds]
    assert survey.file.base not in opened
    assert "app.log" in opened
    survey.file.path.write_bytes(pack(Header(CLUSTER, 3, 4), Observations()))
    look([store], room, known)
    assert survey.file.base in opened


def test_a_single_file_of_a_store_has_its_own_name(store: RemotePath, tmp_path: Path) -> None:
    """As a single file of this machine has."""
    (store / "logs" / "app.log").write_bytes(LOG)
    [item] = inventory_of(store / "logs" / "app.log", tmp_path / "room").items
    assert item.file.name == "app.log"


def test_segments_on_a_store_are_read_on_where_they_have_grown(store: RemotePath, tmp_path: Path) -> None:
    """Rows are those of the same files in a folder, after each step; only what is new is read."""
    disk, lakes = tmp_path / "disk", [Lake(tmp_path / "here"), Lake(tmp_path / "there")]
    disk.mkdir()
    places: list[Place] = [disk, store]
    read: list[int] = []
    for number, data in enumerate((batches(0, 3) + b"torn", batches(0, 5), batches(2, 6))):
        segment(disk, data)
        segment(disk, batches(0, 2), partition=number)
        put(disk, store)
        runs = [Here(), Here()]
        for lake, place, run in zip(lakes, places, runs, strict=True):
            ingest(lake, [place], run)
        assert [file.start for file in runs[1].ran] == [file.start for file in runs[0].ran]
        read += [file.start for file in runs[1].ran]
        for table in FILLED:
            rows = [sorted(map(repr, lake.rows(table, CLUSTER).to_pylist())) for lake in lakes]
            assert rows[1] == rows[0], table.name
    assert any(start > 0 for start in read)


def test_ranges_of_a_log_on_a_store_are_read(store: RemotePath, tmp_path: Path) -> None:
    """And a log that was rotated there is known again."""
    here, there = tmp_path / "app.log", store / "app.log"
    here.write_bytes(LOG)
    there.write_bytes(LOG)
    middle, end = len(LOG) // 2, len(LOG)
    for begins, ends in ((0, middle), (middle, end)):
        rows = [read_range(path, "app.log", None, begins, ends).rows for path in (here, there)]
        assert rows[0]
        assert repr(rows[1]) == repr(rows[0])
    state = state_of(there, "app.log", end)
    assert state == state_of(here, "app.log", end)
    (store / "app.log.1").write_bytes(LOG + b"\nmore")
    assert begins_with(store / "app.log.1", state)
    (store / "app.log.1").write_bytes(b"another" + LOG)
    assert not begins_with(store / "app.log.1", state)


def test_snapshots_on_a_store_are_read(store: RemotePath, folder: Path) -> None:
    """Packed, as the collector writes them."""
    name = "survey-abc-20261117T000000.000Z.jsonl.gz"
    (store / name).write_bytes((folder / name).read_bytes())
    assert list(read_snapshot(store / name)) == list(read_snapshot(folder / name))


def test_a_folder_that_is_not_there_is_told(store: RemotePath, tmp_path: Path) -> None:
    """And nothing stumbles over it."""
    [row] = inventory_of(store / "nothing", tmp_path / "room").unopened
    assert row.reason == "It cannot be opened: no such file or directory."
