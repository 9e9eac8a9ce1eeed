"""Broken files of every kind give rows and reasons. What the fuzz has found once has a test of its own.

`make test` reads some hundred files, `make fuzz` a million and more (KELPIE_FUZZ_FILES).
"""

import json
from pathlib import Path

import pytest

from kelpie.acknowledgements import UnreadableAcknowledgements, parsed
from kelpie.evidence.mapping_dumps import read_mappings
from kelpie.repair import change_records
from kelpie.store import Store
from kelpie.store_files import StoreFiles
from tests.evidence.reading import events_of
from tests.fuzzing.files import READERS, fuzz_files
from tests.fuzzing.files_seeds import CLUSTER, TIME, seeds
from tests.fuzzing.mutation import runs

FILES = runs("KELPIE_FUZZ_FILES", 800)


def _seed(kind: str) -> str:
    return next(seed.content for seed in seeds() if seed.kind == kind).decode()


def test_broken_files_of_every_kind_are_read() -> None:
    """No exception but Kelpie's own, within bounds of time and memory, whatever is in a file."""
    fuzz = fuzz_files(FILES)
    assert fuzz.rows > fuzz.kinds["evidence"]
    assert fuzz.kinds.total() == 1 or set(fuzz.kinds) == set(READERS)


@pytest.mark.parametrize("value", ["b'é'", r"b'\q'", r"b'\x1'", r"b'\N{DIGIT ONE}'", 'b"'])
def test_a_value_that_python_would_not_write_is_no_mapping(value: str) -> None:
    """It was read as Python reads bytes, which raises SyntaxError for what only looks like them."""
    lines = ["/client_group_id\tvalue=b''\tversion=1", f"/client_group_id/d\tvalue={value}\tversion=1"]
    assert not read_mappings(lines, "a.txt").mappings


@pytest.mark.parametrize("at", ["1e400", "[" * 5000, "253402300800000", "-9223372036854775808", "null"])
def test_a_broken_record_of_a_change_is_passed_over(at: str, tmp_path: Path) -> None:
    """A time that is infinite, nested or has no date: `kelpie undo` must still list the others."""
    text = _seed("undo")
    (tmp_path / "undo.json").write_text(text.replace(f'"at": {json.loads(text)["at"]}', f'"at": {at}'))
    record = change_records._read(tmp_path / "undo.json")
    assert record is None or record.file.name.endswith(f"{record.id}.json")


@pytest.mark.parametrize(
    "message",
    [
        "g_app-0 successfully owned partition  for topic orders",
        " successfully owned partition 1 for topic orders",
        "conflict in /consumers/g/owners/orders/1 data:  stored data: g_app-0",
    ],
)
def test_a_claim_without_thread_or_partition_is_none(message: str) -> None:
    """A part of the line that was overwritten: the others are not read as if it were there."""
    assert not events_of(f"[2026-11-15 20:56:40,123] INFO [g_app], {message} (kafka.consumer.Z)")


def test_a_store_whose_tables_have_broken_names_is_set_aside(tmp_path: Path) -> None:
    """SQLite's message quoted bytes that are no UTF-8, and Python raised UnicodeDecodeError for it."""
    content = next(seed.content for seed in seeds() if seed.kind == "store")
    path = StoreFiles(tmp_path, []).of(CLUSTER)
    path.parent.mkdir(parents=True)
    path.write_bytes(content.replace(b"TABLE illness", b"TABLE\xa0illness"))
    store = Store(tmp_path)
    assert not store.recall(CLUSTER, TIME).known_groups
    (word,) = store.words
    assert "was unreadable" in word


def test_nested_or_infinite_acknowledgements_are_none() -> None:
    """RecursionError and OverflowError are no words for a user."""
    with pytest.raises(UnreadableAcknowledgements):
        parsed("[" * 100_000, "here")
    text = _seed("acknowledgements")
    until = json.loads(text)["clusters"]["c-1"][0]["until"]
    with pytest.raises(UnreadableAcknowledgements):
        parsed(text.replace(f'"until": {until}', '"until": 1e400'), "here")
