"""Small archives that would become large: every member and every byte of the stream counts."""

import io
import lzma
import tarfile
import tracemalloc
import zipfile
import zlib
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


def test_an_xz_file_that_asks_for_gigabytes_of_memory_is_not_unpacked(tmp_path: Path) -> None:
    """A small file says how large its dictionary is, and the unpacker would hold one of that size."""
    path = tmp_path / "server.log.xz"
    path.write_bytes(_xz_with_dictionary(b"[2026-11-15 20:56:40,123] INFO x" * 9, 1 << 30))
    packed, reasons = _unpacked(path)
    assert not packed
    assert reasons == [
        "It was read in part only: it takes more than 160 MiB of memory to unpack it. "
        "Unpack it and name the folder instead."
    ]


def test_an_xz_file_of_the_strongest_preset_is_unpacked(tmp_path: Path) -> None:
    """`xz -9` asks for 65 MiB. Several streams in a row, with padding between them, are one file."""
    path = tmp_path / "server.log.xz"
    parts = [b"first " * 50_000, b"", b"second"]
    path.write_bytes(b"".join(lzma.compress(part, preset=9) + bytes(8) for part in parts))
    (packed,), reasons = _unpacked(path)
    assert packed.path.read_bytes() == b"".join(parts)
    assert not reasons


@pytest.mark.parametrize("cut", [13, -1])
def test_an_xz_file_that_is_cut_off_is_told(tmp_path: Path, cut: int) -> None:
    """The end of a stream has a checksum, so a file that was not copied whole is known by it."""
    path = tmp_path / "server.log.xz"
    path.write_bytes(lzma.compress(b"text")[:cut])
    assert _unpacked(path) == (
        [],
        ["It is a broken xz archive, read as far as it goes: it ends in the middle of a stream."],
    )


def _xz_with_dictionary(content: bytes, size: int) -> bytes:
    """As xz packs it with `--lzma2=dict=SIZE`: here without the memory that packing takes."""
    packed = bytearray(lzma.compress(content, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]))
    header = packed[12 : 12 + (packed[12] + 1) * 4]
    at = header.index(b"\x21\x01") + 2
    header[at] = 2 * (size.bit_length() - 1) - 24
    header[-4:] = zlib.crc32(header[:-4]).to_bytes(4, "little")
    packed[12 : 12 + len(header)] = header
    return bytes(packed)


@pytest.mark.parametrize("is_hidden", [False, True])
def test_a_zip_with_a_large_directory_is_not_opened(tmp_path: Path, is_hidden: bool) -> None:
    """zipfile would make an object of each of its entries before the first can be looked at.

    Also if the end of the archive looks like two: the last one would be small, and zipfile takes the first.
    """
    entry = bytes.fromhex("504b01021400140000000000000021580000000000000000000000000100") + bytes(16) + b"a"
    entries = entry * (1 + (1 << 23) // len(entry))
    size = len(entries).to_bytes(4, "little")
    end = b"PK\x05\x06" + bytes(8) + size + (b"PK\x05\x06" if is_hidden else bytes(4)) + bytes(2)
    path = tmp_path / "a.zip"
    path.write_bytes(entries + end)
    tracemalloc.start()
    try:
        _, reasons = _unpacked(path, kind=Archive.ZIP)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert "its list of files is larger than is read" in reasons[0]


def test_members_of_a_zip_that_cannot_be_unpacked_count(tmp_path: Path) -> None:
    """Entries without content cost 50 bytes each, and gave a row each."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(300):
            archive.writestr(f"{number}.log", "x")
    path.write_bytes(path.read_bytes().replace(b"PK\x03\x04", b"PK\x03\x05", 300))
    path.write_bytes(b"PK\x03\x04" + path.read_bytes())
    packed, reasons = _unpacked(path, kind=Archive.ZIP)
    assert not packed
    assert len(reasons) == 21
    assert reasons[-1] == "280 further files in it cannot be unpacked."
    _, reasons = _unpacked(path, Budget(files_left=100), kind=Archive.ZIP)
    assert "more files than are unpacked" in reasons[-1]


def test_a_zip_with_lzma_is_told(tmp_path: Path) -> None:
    """Its entries say how much memory they take, and Python's zipfile would give it to them."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("server.log", "x")
    packed, reasons = _unpacked(path, kind=Archive.ZIP)
    assert not packed
    assert reasons == [
        "It cannot be unpacked: it is packed with LZMA; unpack the archive and name the folder instead."
    ]


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
