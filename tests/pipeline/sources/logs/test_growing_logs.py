"""Logs that grow, and that are rotated meanwhile: each line is told once."""

import pickle
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from kelpie.pipeline.sources.logs.rows import EVENTS
from tests.pipeline.sources.logs.growing_logs import Growing, wanted
from tests.pipeline.sources.logs.log_texts import CLIENT, ENTRIES, TOLD, mixed, plain


@pytest.mark.parametrize(("seed", "entries"), [(0, ENTRIES), (1, TOLD), (2, TOLD)])
def test_a_log_that_grows_is_read_on(
    spark: SparkSession, tmp_path: Path, seed: int, entries: Sequence[str]
) -> None:
    """Cut anywhere: within a line, within a stack trace; now and then a run is killed before its commit."""
    start = [ENTRIES[7].format(s=1, ms=number, n=1).encode() for number in range(25)]
    text = b"\n".join([*start, *mixed(200 + seed, 250, entries)])
    random = Random(seed)
    cuts = sorted(random.sample(range(2000, len(text)), 7))
    path = tmp_path / "it's growing.log"
    growing = Growing(spark, tmp_path)
    for cut in (*cuts, len(text)):
        path.write_bytes(text[:cut])
        growing.take_in(path, committed=random.random() < 0.3)
        assert plain(growing.take_in(path)) == wanted(path), cut
    assert plain(growing.take_in(path)) == wanted(path)


LATER = {
    "who was away is back": (
        ENTRIES[13]
        + "\n"
        + CLIENT
        + "consumer poll timeout has expired. This means the time between calls was longer.",
        CLIENT + "Revoke previously assigned partitions t-{n}",
    ),
    "the limit is told": (
        CLIENT + "consumer poll timeout has expired. This means the time between calls was longer.",
        ENTRIES[13],
    ),
    "the zone is told": (
        ENTRIES[0],
        "2026-11-15 22:56:00,000 DEBUG request(receivedTimeMs=1794776160000, x)",
    ),
    "it is not the only group": ("2026-11-15 20:56:{s:02},{ms:03} WARN Offset commit failed: no", CLIENT),
    "the stack trace goes on": (
        "2026-11-15 20:56:{s:02},{ms:03} ERROR org.example.Worker - Offset commit failed: no",
        "Caused by: org.apache.kafka.common.errors.RebalanceInProgressException: yes",
    ),
}


@pytest.mark.parametrize(("first", "later"), LATER.values(), ids=list(LATER))
def test_what_later_lines_say_of_earlier_ones_counts(
    spark: SparkSession, tmp_path: Path, first: str, later: str
) -> None:
    """Then the log is read anew, and its rows are replaced."""
    lines = [ENTRIES[1].format(s=1, ms=number, n=1) for number in range(25)]
    path = tmp_path / "client.log"
    growing = Growing(spark, tmp_path)
    lines.append(first.format(s=2, ms=0, n=1))
    path.write_text("\n".join(lines) + "\n")
    before = growing.take_in(path)
    assert plain(before) == wanted(path)
    lines.append(later.format(s=9, ms=0, n=2 if later is CLIENT else 1))
    path.write_text("\n".join(lines) + "\n")
    after = growing.take_in(path)
    assert plain(after) == wanted(path)
    assert growing.anew == 1
    assert after[: len(before)] != before


def test_new_lines_of_a_quiet_log_do_not_make_it_be_read_anew(spark: SparkSession, tmp_path: Path) -> None:
    """Only what is new is read; and it goes on under another name when it was rotated."""
    lines = [ENTRIES[number % 2].format(s=number, ms=number, n=number % 3) for number in range(58)]
    path = tmp_path / "server.log"
    growing = Growing(spark, tmp_path)
    for count in (30, 31, 45, 58):
        path.write_text("\n".join(lines[:count]) + "\n")
        found = growing.take_in(path)
        assert plain(found) == wanted(path)
    assert growing.anew == 0
    rotated = path.rename(tmp_path / "server.log.1")
    with rotated.open("a") as file:
        file.write(ENTRIES[0].format(s=59, ms=59, n=1) + "\n")
    path.write_text("\n".join(line.replace("20:56", "20:57") for line in lines[:30]) + "\n")
    everything = growing.take_in(rotated)
    assert [it.source for it in everything[-2:]] == ["server.log.1:58", "server.log.1:59"]
    assert len(growing.take_in(path)) == 59 + 30
    assert growing.anew == 0


def test_a_log_that_was_cut_short_is_read_anew(spark: SparkSession, tmp_path: Path) -> None:
    """The same first line, and then other ones: what is there now counts."""
    lines = [ENTRIES[0].format(s=number, ms=number, n=1) for number in range(50)]
    path = tmp_path / "server.log"
    growing = Growing(spark, tmp_path)
    path.write_text("\n".join(lines) + "\n")
    assert len(growing.take_in(path)) == 50
    path.write_text("\n".join([lines[0], *lines[25:]]) + "\n")
    assert plain(growing.take_in(path)) == wanted(path)
    assert growing.anew == 1


class _Bomb:
    """What runs when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("renamed", [False, True])
def test_what_stands_in_an_old_lake_as_pickle_is_not_run_and_no_row_comes_twice(
    spark: SparkSession, tmp_path: Path, renamed: bool
) -> None:
    """Whoever hands over tables must not run code here. Logs that grow are read anew, once."""
    lines = [ENTRIES[number % 2].format(s=number, ms=number, n=number % 3) for number in range(30)]
    path, quiet = tmp_path / "server.log", tmp_path / "quiet.log"
    growing = Growing(spark, tmp_path)
    path.write_text("\n".join(lines[:20]) + "\n")
    quiet.write_text("\n".join(lines[7:12]) + "\n")
    growing.take_in(path, quiet)
    (page,) = Path(str(growing.lake.root)).glob("_logs/*/*.json")
    page.rename(page.with_suffix(".log-progress"))
    page.with_suffix(".log-progress").write_bytes(pickle.dumps(_Bomb(tmp_path / "ran")))
    if renamed:
        path = path.rename(tmp_path / "server.log.1")
        (tmp_path / "server.log").write_text(lines[29] + "\n")
    path.write_text("\n".join(lines) + "\n")
    of_quiet = wanted(quiet)
    events = [event for event in plain(growing.take_in(path)) if event not in of_quiet]
    assert events == [event for event in wanted(path) if event not in of_quiet]
    assert growing.notes == [growing.notes[0]]
    assert "deleted unread" in growing.notes[0]
    assert not list(Path(str(growing.lake.root)).glob("_logs/*/*.log-progress"))
    assert not (tmp_path / "ran").exists()
    assert growing.lake.count(EVENTS, "c") == len(wanted(path)) + len(of_quiet)
    growing.take_in(path)
    assert len(growing.notes) == 1


@pytest.mark.parametrize("damage", ["", "[]", "\xff", "[" * 100_000, '["x", [], ["[1]"]]', '{"shape": 1}'])
def test_progress_that_cannot_be_read_is_no_reason_to_stop(
    spark: SparkSession, tmp_path: Path, damage: str
) -> None:
    """Then the log is read anew, and its rows are replaced."""
    lines = [ENTRIES[number % 2].format(s=number, ms=number, n=number % 3) for number in range(30)]
    path = tmp_path / "server.log"
    growing = Growing(spark, tmp_path)
    path.write_text("\n".join(lines[:20]) + "\n")
    growing.take_in(path)
    (page,) = Path(str(growing.lake.root)).glob("_logs/*/*.json")
    page.write_text(damage)
    path.write_text("\n".join(lines) + "\n")
    assert plain(growing.take_in(path)) == wanted(path)
    assert "is damaged" in growing.notes[0]
