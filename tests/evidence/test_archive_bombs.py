"""Small archives that would become large: every member and every byte of the stream counts."""

import io
import lzma
import tarfile
import tracemalloc
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from kelpie.evidence import zookeeper_dumps
from kelpie.evidence.archives import Archive, Budget, Packed, unpack
from kelpie.evidence.zookeeper_dumps import NoDump, read_dump
from kelpie.observations import Unasked


def _tar(path: Path, members: Iterable[tarfile.TarInfo]) -> Path:
    with tarfile.open(path, "w:xz", format=tarfile.PAX_FORMAT, preset=0) as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def _member(name: str, kind: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    for field, value in more.items():
        setattr(member, field, value)
    return member


def _unpacked(
    path: Path, budget: Budget | None = None, kind: Archive = Archive.XZ
) -> tuple[list[Packed], list[str]]:
    room = path.parent / "room"
    room.mkdir(exist_ok=True)
    found = list(unpack(path, path.name, kind, room, budget or Budget()))
    return (
        [each for each in found if isinstance(each, Packed)],
        [each.reason for each in found if isinstance(each, Unasked)],
    )


def test_folders_of_an_archive_cost_no_memory(tmp_path: Path) -> None:
    """20,000 of them are 2 KB of xz, and were 10 MB of members that nobody had asked for."""
    path = _tar(tmp_path / "a.tar.xz", [_member("d", tarfile.DIRTYPE)] * 5000)
    tracemalloc.start()
    try:
        assert _unpacked(path) == ([], [])
        assert tracemalloc.get_traced_memory()[1] < 1_500_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE, tarfile.REGTYPE])
def test_every_member_counts(tmp_path: Path, kind: bytes) -> None:
    """Whatever it is: no more than so many are looked at, and that is told."""
    path = _tar(tmp_path / "a.tar.xz", [_member("d", kind)] * 300)
    _, reasons = _unpacked(path, Budget(files_left=100))
    assert "more files than are unpacked" in reasons[-1]


def test_the_whole_stream_counts(tmp_path: Path) -> None:
    """Headers are bytes, too: 512 for each member that has none of its own."""
    path = _tar(tmp_path / "a.tar.xz", [_member("d", tarfile.DIRTYPE)] * 1000)
    _, reasons = _unpacked(path, Budget(bytes_left=100_000))
    (reason,) = reasons
    assert reason.startswith("It was read in part only: what archives hold is larger than is unpacked.")


def test_holes_of_a_sparse_file_count(tmp_path: Path) -> None:
    """A terabyte of nothing, in some hundred bytes; nothing of it is written."""
    holes = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(2**40), "GNU.sparse.name": "x"}
    path = _tar(tmp_path / "a.tar.xz", [_member("x", size=1, pax_headers=holes)])
    packed, reasons = _unpacked(path)
    assert not packed
    assert "larger than is unpacked" in reasons[0]
    assert not list((tmp_path / "room").iterdir())


def test_many_links_are_told_in_few_lines(tmp_path: Path) -> None:
    """One row each would be as many rows as there are members."""
    path = _tar(tmp_path / "a.tar.xz", [_member("l", tarfile.SYMTYPE, linkname="/etc/passwd")] * 50)
    _, reasons = _unpacked(path)
    assert len(reasons) == 21
    assert reasons[-1] == "30 further links, devices and pipes in it are not read."


def test_long_names_are_cut(tmp_path: Path) -> None:
    """A name is shown and kept with every row of its file."""
    packed, _ = _unpacked(_tar(tmp_path / "a.tar.xz", [_member("n" * 100_000, size=1)]))
    assert len(packed[0].name) < 1100


def test_a_header_of_digits_is_refused(tmp_path: Path) -> None:
    """tarfile looks for a character set in it, from every digit on: half a day for a megabyte."""
    header = tarfile.TarInfo("h")
    header.type, header.size = tarfile.XHDTYPE, 1_000_000
    content = header.tobuf(tarfile.USTAR_FORMAT) + b"1" * header.size + bytes(-header.size % 512 + 1024)
    path = tmp_path / "a.tar.xz"
    path.write_bytes(lzma.compress(content, preset=0))
    _, reasons = _unpacked(path)
    assert "a number of hundreds of digits" in reasons[0]


def test_a_zip_with_a_large_directory_is_not_opened(tmp_path: Path) -> None:
    """zipfile would make an object of each of its entries before the first can be looked at."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", "x")
    content = bytearray(path.read_bytes())
    end = content.rfind(b"PK\x05\x06")
    content[end + 12 : end + 16] = (1 << 26).to_bytes(4, "little")
    path.write_bytes(content)
    _, reasons = _unpacked(path, kind=Archive.ZIP)
    assert "its list of files is larger than is read" in reasons[0]


def test_a_dump_of_zookeeper_is_not_read_when_its_values_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its text is small then, and what it becomes in memory is not."""
    path = tmp_path / "tree.json"
    path.write_text("{" + ",".join(f'"/consumers/{number}":0' for number in range(1000)) + "}")
    assert len(read_dump(path).nodes) == 1000
    monkeypatch.setattr(zookeeper_dumps, "MOST_VALUES", 999)
    with pytest.raises(NoDump, match="more than 999 values"):
        read_dump(path)
