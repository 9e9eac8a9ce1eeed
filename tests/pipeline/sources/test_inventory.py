"""Which files go in, once."""

import os
from pathlib import Path

from kelpie.evidence.archives import Budget
from kelpie.evidence.files import Search
from kelpie.evidence.recognition import Kind
from kelpie.pipeline.sources.inventory import LAST, FileBatch, plan, take_inventory
from kelpie.pipeline.storage.lake import Lake


def planned(lake: Lake, folder: Path, room: Path) -> list[FileBatch]:
    return plan(lake, "c", take_inventory([folder], Search(room, Budget()), room))


def done(lake: Lake, batch: FileBatch) -> None:
    lake.append_rows(LAST, "c", [], application=batch.application, version=batch.number)


def test_a_file_goes_in_once_and_a_grown_one_again(tmp_path: Path) -> None:
    """By path, size and time; what is there already is left out."""
    lake, folder, room = Lake(tmp_path / "tables"), tmp_path / "in", tmp_path / "room"
    folder.mkdir()
    (folder / "a.log").write_text("[2026-11-15 18:24:52,001] INFO hello (kafka.server.KafkaServer)\n")
    (folder / "up.prom").write_text("# TYPE up gauge\nup 1\n")
    (batch,) = planned(lake, folder, room)
    assert {item.file.name: set(item.kinds) for item in batch.items} == {
        "a.log": {Kind.LOG},
        "up.prom": {Kind.SCRAPE},
    }
    done(lake, batch)
    assert planned(lake, folder, room) == []
    (folder / "a.log").write_text("[2026-11-15 18:24:52,001] INFO hello, again (kafka.server.KafkaServer)\n")
    (second,) = planned(lake, folder, room)
    assert ([item.file.name for item in second.items], second.number) == (["a.log"], 2)


def test_a_killed_batch_is_taken_up_under_its_number_before_anything_new(tmp_path: Path) -> None:
    """So tables that have it already know that they have."""
    lake, folder, room = Lake(tmp_path / "tables"), tmp_path / "in", tmp_path / "room"
    folder.mkdir()
    (folder / "a.txt").write_text("orders:0:12\n")
    (killed,) = planned(lake, folder, room)
    (folder / "b.txt").write_text("orders:1:12\n")
    again, new = planned(lake, folder, room)
    assert (again.number, [it.file.name for it in again.items]) == (killed.number, ["a.txt"])
    assert (new.number, [it.file.name for it in new.items]) == (killed.number + 1, ["b.txt"])
    assert planned(lake, folder, room) == [again, new], "killed once more, before either was done"


def test_what_is_of_no_use_is_kept_with_the_reason(tmp_path: Path) -> None:
    """Nothing is dropped without a word."""
    folder, room = tmp_path / "in", tmp_path / "room"
    folder.mkdir()
    (folder / "picture.bin").write_bytes(b"\x89PNG\x00" + os.urandom(64))
    found = take_inventory([folder], Search(room, Budget()), room)
    assert [(it.file.name, it.reason) for it in found.items] == [
        ("picture.bin", "It is binary, and neither a log segment nor an archive.")
    ]
