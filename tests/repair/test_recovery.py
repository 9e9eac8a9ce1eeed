"""What groups had committed last, from whatever still knows."""

import json
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.observations import Commit, Committed, LogEnds, Observations, PartitionView
from kelpie.repair.claims import Certainty
from kelpie.repair.recovery import recover, removed
from tests.evidence import unpacked
from tests.evidence.records import batch
from tests.evidence.records import commit as offset_commit

OLD = "kafka-0.9.0.1-coordinator-outage"


def commit(offset: int, at: int, record: int, broker: int = 1) -> Commit:
    source = f"broker-{broker}/__consumer_offsets-3/00000000000000000000.log@{record}"
    return Commit("g", "t", 0, offset, at, source=source)


def ends(broker: int, latest: int) -> LogEnds:
    source = f"broker-{broker}/__consumer_offsets-3/00000000000000000000.log"
    return LogEnds("__consumer_offsets", 3, 0, latest, source=source)


def test_newest_commit_of_all_copies_counts() -> None:
    """One disk goes further than the other; all there are were read, so it is certain."""
    seen = Observations(
        commits=[commit(5, 100, 1), commit(9, 200, 2, broker=2)],
        ends=[ends(1, 2), ends(2, 3)],
        partitions=[PartitionView("__consumer_offsets", 3, -1, (1, 2), ())],
    )
    ((group, row),) = recover(seen)
    assert (group, *row.partition, row.offset, row.claim.at) == ("g", "t", 0, 9, 200)
    assert row.certainty is Certainty.CERTAIN
    assert row.claim.source.startswith("broker-2/")


def test_as_it_was_at_a_time() -> None:
    """Before the rewind, before the removal."""
    seen = Observations(commits=[commit(5, 100, 1), commit(2, 200, 2), commit(-1, 300, 3)])
    assert [row.offset for _, row in recover(seen, at=150)] == [5]
    assert [row.offset for _, row in recover(seen, at=250)] == [2]
    assert list(recover(seen)) == []


def test_a_described_offset_is_better_than_none_and_says_so() -> None:
    """The output of a tool, where no disk was kept."""
    ((_, row),) = recover(Observations(committed=[Committed("g", "t", 0, 7, at=50, source="describe.txt:4")]))
    assert (row.offset, row.certainty) == (7, Certainty.DATED)


def test_command_gives_rows_with_source_and_certainty(capsys: pytest.CaptureFixture[str]) -> None:
    """From the disks of the dead brokers of the recording; no cluster, no Spark."""
    assert main(["offsets", "recover", str(unpacked(OLD)), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    hit = [row for row in rows if row["group"] == "billing-1"]
    assert {(row["partition"], row["offset"]) for row in hit} == {
        (0, 3229),
        (1, 1644),
        (2, 2173),
        (3, 3229),
        (4, 1644),
        (5, 2173),
    }
    assert set(hit[0]) >= {
        "group",
        "topic",
        "partition",
        "offset",
        "commit_timestamp",
        "source",
        "certainty",
    }
    assert all("segments/broker-" in row["source"] for row in hit)


def test_command_says_when_nothing_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty CSV put back would be worse than a word."""
    assert main(["offsets", "recover", str(unpacked(OLD)), "--group", "nobody"]) == 1
    assert "No committed offsets of nobody" in capsys.readouterr().err


def test_offsets_that_were_removed_are_told_with_what_stood_before() -> None:
    """A deleted group was left out without a word, as if it had never been."""
    seen = Observations(commits=[commit(5, 100, 1), commit(9, 200, 2), commit(-1, 300, 3)])
    (row,) = removed(seen)
    assert (row.group, row.before.offset, row.before.at, row.at) == ("g", 9, 200, 300)
    assert list(removed(seen, at=250)) == [], "then it was there"
    assert list(removed(seen, groups=["other"])) == []
    back = Observations(commits=[commit(5, 100, 1), commit(-1, 300, 3), commit(6, 400, 4)])
    assert list(removed(back)) == [], "it was committed again"


def test_command_says_when_a_group_was_deleted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On standard error: rows are what somebody may put back."""
    seen = Observations(commits=[commit(9, 200, 2), commit(-1, 300, 3)])
    monkeypatch.setattr("kelpie.cli.offsets.read_witnesses", lambda *_: seen)
    assert main(["offsets", "recover", str(tmp_path), "--group", "g"]) == 1
    said = capsys.readouterr()
    assert "Group g, t-0: the offset was deleted or has expired at 1970-01-01T00:00:00.300Z." in said.err
    assert "Before that it was 9" in said.err
    assert main(["offsets", "recover", str(tmp_path)]) == 1
    assert "Left out: 1 offset that was deleted or has expired, of g." in capsys.readouterr().err


def test_a_record_stamped_in_the_far_future_is_recovered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One such commit ended the command, and `doctor --json` with it."""
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    records = [offset_commit("billing", 7, at=2**63 - 1), offset_commit("mail", 8, at=1_794_793_788_619)]
    (folder / f"{0:020}.log").write_bytes(batch(records, at=2**62))
    assert main(["offsets", "recover", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["group"], row["offset"], row["commit_timestamp"]) for row in rows] == [
        ("billing", 7, None),
        ("mail", 8, 1_794_793_788_619),
    ]
    assert main(["doctor", "--evidence", str(tmp_path), "--json"]) in (0, 1, 2, 3)
    assert json.loads(capsys.readouterr().out)["groups"]


def test_names_of_groups_do_not_reach_the_terminal_as_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither those in the table nor those in an error."""
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(batch([offset_commit("pay\x1b]0;x\x07", 7)]))
    assert main(["offsets", "recover", str(tmp_path)]) == 0
    assert main(["offsets", "recover", str(tmp_path), "--group", "\x1b[2J"]) == 1
    shown = capsys.readouterr()
    assert "pay\\x1b]0;x\\x07" in shown.out
    assert "\\x1b[2J" in shown.err
    assert "\x1b" not in shown.out + shown.err
