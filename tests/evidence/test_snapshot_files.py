"""The format of snapshots: what goes in comes out, and what is not whole is not believed."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.evidence import read_evidence
from kelpie.evidence.snapshot_files import Header, Torn, header_of, is_snapshot, pack, read_snapshot
from kelpie.observations import BrokerView, Committed, Listing, Observations, Setting, Unasked
from kelpie.observations.encoding import gathered

NAMES = [
    "",
    "\n",
    '"]',
    "\x00\x1b[2J",
    "\ud800",
    "é" * 9,
    "x" * 65_536,
    "\u2028",
    '{"format":"kelpie survey"',
]
_HEADER = Header("c", 1, 2, "h:1", answered=1)


def survey(groups: list[str]) -> Observations:
    return Observations(
        brokers=[BrokerView(1, "h", 1, alive=True, at=2)],
        listings=[Listing(1, tuple(groups), at=2)],
        committed=[Committed(group, group, 0, 7, metadata=group, at=2) for group in groups],
        settings=[Setting("topic t", "retention.ms", "1")],
        unasked=[Unasked("group", group, "nobody is there", 2) for group in groups],
        known_groups=dict.fromkeys(groups, "an earlier survey"),
    )


def put(folder: Path, data: bytes, name: str = "survey-c-20261116T051230.123Z.jsonl.gz") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@given(groups=st.lists(st.text(st.characters(exclude_categories=()), max_size=9), max_size=4))
def test_any_names_come_back_as_they_were(
    groups: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Groups may be called anything, and people have tried."""
    path = tmp_path_factory.getbasetemp() / "any.gz"
    path.write_bytes(pack(_HEADER, survey([*groups, *NAMES])))
    assert gathered(read_snapshot(path)) == survey([*groups, *NAMES])


def test_a_file_that_somebody_unpacked_is_the_same(tmp_path: Path) -> None:
    """gunzip is the first thing that people do."""
    path = put(tmp_path, gzip.decompress(pack(_HEADER, survey(NAMES))), "s.jsonl")
    assert is_snapshot(path.read_bytes()[:65_536])
    assert gathered(read_snapshot(path)) == survey(NAMES)
    assert {row.group for row in read_evidence([path]).committed} == set(NAMES)


def test_no_beginning_of_a_snapshot_is_taken_for_one(tmp_path: Path) -> None:
    """Half of it would say that groups are gone."""
    plain = gzip.decompress(pack(_HEADER, survey(["a", "b"])))
    packed = pack(_HEADER, survey(["a", "b"]))
    for whole in (plain, packed):
        for length in range(len(whole)):
            with pytest.raises(Torn):
                list(read_snapshot(put(tmp_path, whole[:length])))


def test_what_is_none_is_told_with_the_reason(tmp_path: Path) -> None:
    """And the others are read all the same."""
    told = {"format": "kelpie survey", "version": 1, "cluster": "c", "begun": 1, "ended": 2, "rows": 1}
    line = json.dumps({**told, "answered": 1})
    bad = {
        "newer.jsonl": line.replace('"version": 1', '"version": 2') + "\n",
        "row.jsonl": line + '\n["broker",{"node_id":"one"}]\n',
        "kind.jsonl": line + '\n["unheard of",{}]\n',
        "deep.jsonl": line + "\n" + "[" * 100_000 + "\n",
        "number.jsonl": line + "\n7\n",
        "words.jsonl": line + "\nnothing at all\n",
        "few.jsonl": line + "\n",
        "many.jsonl": line + '\n["broker",{"node_id":1}]\n["broker",{"node_id":1}]\n',
        "header.jsonl": line.replace('"begun": 1', '"begun": "x"') + "\n",
    }
    for name, text in bad.items():
        put(tmp_path, text.replace('{"format": ', '{"format":').encode(), name)
    put(tmp_path, pack(_HEADER, survey(["a"])))
    bomb = gzip.compress((line + "\n").replace('{"format": ', '{"format":').encode() + b'["' + b"x" * 10**7)
    put(tmp_path, bomb, "bomb.jsonl.gz")
    found = read_evidence([tmp_path])
    assert {row.name for row in found.unasked if row.kind == "file"} == {*bad, "bomb.jsonl.gz"}
    assert all("stumble" not in row.reason for row in found.unasked)
    assert {row.group for row in found.committed} == {"a"}


def test_two_clusters_are_not_mixed(tmp_path: Path) -> None:
    """The one with most snapshots is looked at, and the other one is told."""
    for number in range(3):
        data = pack(Header("c", number, number, "h:1", answered=1), survey(["mine"]))
        put(tmp_path, data, f"survey-c-{number}.gz")
    put(tmp_path, pack(Header("d", 9, 9, "h:2", answered=1), survey(["theirs"])), "survey-d-9.gz")
    found = read_evidence([tmp_path])
    assert {row.group for row in found.committed} == {"mine"}
    (row,) = [row for row in found.unasked if row.kind == "file"]
    assert row.name == "survey-d-9.gz"
    assert "of cluster d; most are of c" in row.reason
    assert header_of((tmp_path / row.name).read_bytes()).cluster == "d"
