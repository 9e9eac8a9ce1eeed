"""What every file system must do, asked of a real one."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kelpie.places import RemotePath
from kelpie.places.place import create_exclusively, files_below, move, remove_folder, write_whole

WRITERS = 8
KEYS = 12


def one_writer_wins(folder: RemotePath) -> None:
    """All begin at once; each key has the bytes of the one who was told that he won."""

    def write(writer: int) -> list[int]:
        won = []
        for key in range(KEYS):
            try:
                create_exclusively(folder / f"{key}.json", f"{writer} of {key}".encode(), draft="draft-")
            except FileExistsError:
                continue
            won.append(key)
        return won

    with ThreadPoolExecutor(WRITERS) as writers:
        won = list(writers.map(write, range(WRITERS)))
    assert sorted(key for keys in won for key in keys) == list(range(KEYS))
    for writer, keys in enumerate(won):
        for key in keys:
            assert (folder / f"{key}.json").read_text() == f"{writer} of {key}"
    assert {path.name for path in folder.iterdir()} == {f"{key}.json" for key in range(KEYS)}


def files_are_found(folder: RemotePath, here: Path) -> None:
    """Whole files go in, ranges come out, and names may hold anything."""
    data = bytes(range(256)) * 10_000
    (here / "file").write_bytes(data)
    odd = folder / "cluster=x y%20ä#?" / "b[1].bin"
    odd.upload(here / "file")
    with odd.open() as file:
        file.seek(1_000_001)
        assert file.read(3) == data[1_000_001:1_000_004]
        file.seek(-2, 2)
        assert file.read() == data[-2:]
    write_whole(folder / "small", b"old")
    write_whole(folder / "small", b"new")
    assert (folder / "small").read_bytes() == b"new"
    assert (folder / "small").stat().st_size == 3
    assert sorted(path.name for path in folder.iterdir()) == ["cluster=x y%20ä#?", "small"]
    assert list(folder.glob("cluster=*/*.bin")) == [odd]
    move(odd, folder / "moved" / "c.bin")
    assert sorted(map(str, files_below(folder))) == [f"{folder}/moved/c.bin", f"{folder}/small"]
    assert (folder / "moved").is_dir()
    assert not (folder / "moved").is_file()
    (folder / "small").unlink()
    (folder / "small").unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        (folder / "small").read_bytes()
    remove_folder(folder)
    remove_folder(folder)
    assert not folder.exists()
    assert list(folder.iterdir()) == []
