"""Dumps of KoP's mapping tree."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kelpie.evidence import read_evidence
from kelpie.evidence.mapping_dumps import looks_like_mappings, read_mappings
from tests.evidence import unpacked

KOP = "kop-3.2-scrapes"
DUMP = [
    "# before",
    "/client_group_id\tvalue=b''\tversion=0\tephemeralOwner=0x0",
    "/client_group_id/10.0.0.7-app-1\tvalue=b'billing'\tversion=2\tephemeralOwner=0x0",
    "# after",
    "/client_group_id does not exist",
]


def test_a_dump_has_listings_and_nodes() -> None:
    """A tree that does not exist is a listing without nodes."""
    rows = read_mappings(DUMP, "zk.txt")
    assert [(row.source, row.exists) for row in rows.mapping_listings] == [
        ("zk.txt:2", True),
        ("zk.txt:5", False),
    ]
    (node,) = rows.mappings
    assert (node.listing, node.source) == ("zk.txt:2", "zk.txt:3")
    assert (node.path, node.group, node.version) == ("/client_group_id/10.0.0.7-app-1", "billing", 2)
    assert (node.host, node.client_id) == ("10.0.0.7", "app-1")
    assert rows.known_groups == {"billing": "nodes in zk.txt"}


def test_a_comment_may_say_when_a_listing_was_made() -> None:
    """In any zone; a comment without a time says nothing, and no other listing's time is taken over."""
    lines = [
        "# 2026-11-17T01:30:00Z before",
        *DUMP[1:3],
        "# after",
        DUMP[4],
        "# 2026-11-17 02:30:00+01:00",
        *DUMP[1:3],
    ]
    rows = read_mappings(lines, "zk.txt")
    at = 1794879000000
    assert [row.at for row in rows.mapping_listings] == [at, None, at]
    assert [row.at for row in rows.mappings] == [at, at]
    assert read_mappings(["# 2026-99-17T01:30:00Z", *DUMP[1:3]], "zk.txt").mapping_listings[0].at is None


def test_hostile_names_come_back_as_they_were() -> None:
    """Quotes, backslashes, ends of lines, letters outside ASCII; a slash in a client id nests nodes."""
    (file,) = unpacked(KOP).glob("07*.zk.txt")
    rows = read_mappings(file.read_text(encoding="utf-8").splitlines(), file.name)
    assert {row.client_id: row.group for row in rows.mappings} == {
        "client-ü": "g7-utf8",
        "odd-1": 'we"ird',
        "odd-2": "back\\slash",
        "odd-3": "new\nline",
        "odd-4": "grün",
        "odd-5": "a/b",
        "rdkafka": "g7-empty-id",
        "team/app": "g7-slash",
        "x..y": "g7-dots",
    }
    assert {row.host for row in rows.mappings} == {"127.0.0.1"}


def test_another_root_is_known_by_its_own_line() -> None:
    """groupIdZooKeeperPath can be set."""
    lines = ["/kop/groups\tvalue=b''\tversion=0", "/kop/groups/10.0.0.7-a\tvalue=b'g'\tversion=0"]
    (node,) = read_mappings(lines, "zk.txt").mappings
    assert (node.host, node.client_id) == ("10.0.0.7", "a")


@given(st.binary(max_size=20))
def test_any_value_is_read_as_it_was_written(value: bytes) -> None:
    """Values are bytes, and written as Python writes them. What is no UTF-8 is replaced."""
    line = f"/client_group_id/10.0.0.7-a\tvalue={value!r}\tversion=3\tephemeralOwner=0x0"
    rows = read_mappings(["/client_group_id\tvalue=b''\tversion=0", line], "zk.txt")
    groups = [row.group for row in rows.mappings]
    assert groups == ([value.decode("utf-8", "replace")] if value else [])


def test_all_recorded_dumps_are_known_for_what_they_are_and_nothing_else_is() -> None:
    """A log or another dump is none."""
    files = list(unpacked(KOP).glob("*.zk.txt"))
    assert len(files) == 10
    for file in files:
        assert looks_like_mappings(file.read_text(encoding="utf-8").splitlines()), file.name
    for text in ("", "# only\n# comments", "/client_group_id\tvalue=b''\nINFO a line of a log", "/a/b/c"):
        assert not looks_like_mappings(text.splitlines()), text


def test_every_file_of_the_recording_is_read() -> None:
    """Nothing is left over as unknown."""
    rows = read_evidence([unpacked(KOP)])
    assert rows.unasked == []
    assert (len(rows.scrapes), len(rows.mapping_listings)) == (18, 23)


def test_other_dumps_of_zookeeper_may_hold_the_tree(tmp_path: Path) -> None:
    """JSON of paths, and sessions of zkCli.sh."""
    nodes = {"/client_group_id": "", "/client_group_id/10.0.0.7-a": "g", "/brokers/ids/1": "{}"}
    (tmp_path / "nodes.json").write_text(json.dumps(nodes))
    prompt = "[zk: localhost:2181(CONNECTED) {}] {}\n{}\n"
    listing = prompt.format(0, "ls /client_group_id", "[10.0.0.8-b]")
    value = prompt.format(1, "get /client_group_id/10.0.0.8-b", "h")
    (tmp_path / "session.txt").write_text("Connecting to localhost:2181\n" + listing + value)
    (tmp_path / "only-listed.txt").write_text("Connecting to localhost:2181\n" + listing)
    (tmp_path / "only-read.txt").write_text("Connecting to localhost:2181\n" + value)
    rows = read_evidence([tmp_path])
    assert {(row.host, row.client_id, row.group) for row in rows.mappings} == {
        ("10.0.0.7", "a", "g"),
        ("10.0.0.8", "b", "h"),
    }
    assert len(rows.mapping_listings) == 2
