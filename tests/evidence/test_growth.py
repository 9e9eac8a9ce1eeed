"""Much evidence takes time and memory in proportion to its size, and never more memory than a limit."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kelpie.evidence import folder, read_evidence, snapshot_files
from kelpie.evidence.logs import attribution, log_reader
from kelpie.evidence.snapshot_files import Header
from kelpie.observations import BrokerView, EventKind, Observations
from tests.evidence.records import batch, commit

HEAD = "[2026-11-15 20:56:40,123] INFO "
REVOKED = "Revoke previously assigned partitions t-1"
STATES = "GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS"
OFFSETS = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"


def replica(number: int, _: int) -> tuple[str, bytes]:
    """A disk that has another record than all others."""
    return f"broker-{number}/__consumer_offsets-0/{0:020}.log", batch([commit(f"g{number}", 1)])


def snapshot(number: int, count: int) -> tuple[str, bytes]:
    """The later half of them is damaged."""
    header = Header("c", number, number, "h:1", answered=1)
    packed = snapshot_files.pack(header, Observations(brokers=[BrokerView(number, source="survey")]))
    return f"survey-{number}.jsonl.gz", packed if number < count / 2 else packed[:-9]


def damaged_cluster(number: int, _: int) -> tuple[str, bytes]:
    """One damaged snapshot of a cluster of its own."""
    header = Header(f"c-{number}", 7, 7, f"h-{number}:1", answered=1)
    return f"survey-{number}.jsonl.gz", snapshot_files.pack(header, Observations())[:-9]


def state(number: int, _: int) -> tuple[str, bytes]:
    """The same groups in every output."""
    rows = [f"g{it} b:9092 (1) range Stable {number}" for it in range(20)]
    return f"state-{number}.txt", "\n".join([STATES, *rows]).encode()


def log_of_group(number: int, _: int) -> tuple[str, bytes]:
    """Every second log names groups, the others may be called after one."""
    prefixes = [f"[Consumer clientId=c, groupId=g{number}-{it}] " for it in range(20)] if number % 2 else [""]
    lines = [f"{HEAD}{prefix}{REVOKED}\n" for prefix in prefixes]
    return f"{number}.log", "".join(lines).encode()


def calls_for(files: Callable[[int, int], tuple[str, bytes]], count: int, root: Path) -> int:
    """How many functions are called to read so many files: that is the same every time, seconds are not."""
    for number in range(count):
        name, content = files(number, count)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    calls = 0

    def count_call(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count_call)
    try:
        read_evidence([root])
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("files", [replica, snapshot, damaged_cluster, state, log_of_group])
def test_twice_the_files_take_twice_the_work(
    files: Callable[[int, int], tuple[str, bytes]], tmp_path: Path
) -> None:
    """An archive of a few megabytes can hold 100,000 small files: with a square it takes days."""
    calls_for(files, 3, tmp_path / "warm")
    once = calls_for(files, 60, tmp_path / "once")
    assert calls_for(files, 120, tmp_path / "twice") < 2.3 * once


def test_a_damaged_snapshot_costs_only_itself(tmp_path: Path) -> None:
    """Each is named once, and the newest whole one counts."""
    for number in range(6):
        name, content = snapshot(number, 6)
        (tmp_path / name).write_bytes(content)
    found = read_evidence([tmp_path])
    assert [row.node_id for row in found.brokers] == [2]
    assert sorted(row.name for row in found.unasked) == [f"survey-{number}.jsonl.gz" for number in (3, 4, 5)]


def test_files_behind_the_limit_of_rows_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are held in memory, and a row costs more than its line."""
    monkeypatch.setattr(folder, "MOST_ROWS", 10)
    for name in ("a.txt", "b.txt", "c.txt"):
        lines = [f"{name} t {number} 1 2 1 c /1 c" for number in range(4)]
        (tmp_path / name).write_text("\n".join([OFFSETS, *lines]))
    found = read_evidence([tmp_path])
    assert {row.group for row in found.committed} == {"a.txt", "b.txt"}
    assert [(row.name, row.reason) for row in found.unasked] == [("c.txt", folder.FULL)]


def test_a_text_of_rows_is_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file is enough to fill a memory; what was read of it counts."""
    monkeypatch.setattr(folder, "MOST_LINES", 4)
    (tmp_path / "a.txt").write_text("\n".join([OFFSETS, *(f"g t {it} 1 2 1 c /1 c" for it in range(9))]))
    found = read_evidence([tmp_path])
    assert [row.partition for row in found.committed] == [0, 1, 2]
    assert [row.reason for row in found.unasked] == ["Only its first 4 lines were read."]


def test_records_and_snapshots_behind_the_limit_of_rows_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read when all else was, and get what is left."""
    monkeypatch.setattr(folder, "MOST_ROWS", 5)
    segment = tmp_path / "__consumer_offsets-0" / f"{0:020}.log"
    segment.parent.mkdir()
    segment.write_bytes(batch([commit("g", number) for number in range(9)]))
    packed = snapshot_files.pack(
        Header("c", 1, 1, "h:1", answered=1),
        Observations(brokers=[BrokerView(number) for number in range(9)]),
    )
    (tmp_path / "survey-1.jsonl.gz").write_bytes(packed)
    found = read_evidence([tmp_path])
    assert [row.offset for row in found.commits] == list(range(5))
    assert not found.brokers
    assert sorted(row.reason.partition(":")[0] for row in found.unasked) == [
        "It is left out",
        "The rest of it is left out",
    ]


def test_a_log_names_a_limited_number_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line has a group of its own at no cost; what is left out is told, and events are still read."""
    for module in (attribution, log_reader):
        monkeypatch.setattr(module, "MOST_GROUPS", 3)
    lines = [f"{HEAD}[Consumer clientId=c{it}, groupId=g{it}] {REVOKED}" for it in range(9)]
    observations = log_reader.read_log(lines, "a.log").observations
    assert list(observations.known_groups) == ["g0", "g1", "g2"]
    assert [row.reason for row in observations.unasked] == ["Groups after the first 3 were left out."]
    assert len(observations.events) == 9


def test_events_of_a_log_quote_a_limited_number_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines may be long, and many."""
    monkeypatch.setattr(log_reader, "_MOST_QUOTED", 3000)
    lines = [f"{HEAD}[Consumer clientId=c, groupId=g] {REVOKED}{'x' * 1000}"] * 9
    events = log_reader.read_log(lines, "a.log").observations.events
    assert {event.kind for event in events} == {EventKind.REVOKED}
    assert sum(len(event.text) for event in events) < 5000
