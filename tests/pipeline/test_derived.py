"""Tables that follow from others: made again where what they are made of has changed, and only there."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kelpie.pipeline import stream
from kelpie.pipeline.run import run
from kelpie.pipeline.sources.snapshots import outputs as snapshots
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.stream import Stream
from kelpie.pipeline.summary import Summary
from kelpie.pipeline.tables import TABLES

LINE = (
    "[2026-11-15 18:24:{second:02},001] INFO [GroupCoordinator 0]: Stabilized group {group} generation "
    "{generation} (__consumer_offsets-4) (kafka.coordinator.GroupCoordinator)\n"
)
DERIVED = [name for name, table in TABLES.items() if table.layer != "bronze"]


class Killed(BaseException):
    """No code of ours catches it."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "broker-0.log").write_text("".join(lines(1, 2)))
    return folder


def lines(*generations: int, group: str = "g") -> Iterator[str]:
    for number in generations:
        yield LINE.format(second=number, group=group, generation=number)


def versions(lake: Lake) -> dict[str, int]:
    return {name: lake.open(TABLES[name]).version() for name in DERIVED}


def contents(lake: Lake, *names: str) -> dict[str, list[str]]:
    """Without what tells how it came in."""
    found = {}
    for name in names:
        left_out = {"snapshot", "ordinal"} if name == "cluster_snapshot" else set()
        rows = lake.rows(TABLES[name], "c").to_pylist()
        found[name] = sorted(repr([it for at, it in row.items() if at not in left_out]) for row in rows)
    return found


@pytest.mark.long
def test_tables_are_made_again_only_where_their_inputs_have_changed(
    spark: SparkSession, tmp_path: Path, folder: Path
) -> None:
    """Nothing new costs nothing, nor does another cluster; and events of a log say nothing of commits."""
    lake = Lake(tmp_path / "tables")
    summary = run(spark, lake, [folder], cluster="c")
    before = versions(lake)
    run(spark, lake, [folder], cluster="another", only_bronze=True)
    again = run(spark, lake, [folder], cluster="c")
    assert versions(lake) == before
    assert (again.tables, again.findings) == (summary.tables, summary.findings)
    (folder / "other.log").write_text("".join(lines(5, group="h")))
    run(spark, lake, [folder], cluster="c")
    after = versions(lake)
    assert {name for name in DERIVED if after[name] == before[name]} == {
        "commit_timeline",
        "offset_regression",
        "traffic",
    }
    assert {"h"} < {row["group"] for row in lake.rows(TABLES["group_health"], "c").to_pylist()}


@pytest.mark.long
def test_stream_that_was_killed_between_bronze_and_the_rest_makes_the_rest(
    spark: SparkSession, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing new has come when it starts again; and what was made before the kill is not made again."""
    lake, whole = Lake(tmp_path / "tables"), Lake(tmp_path / "whole")
    run(spark, whole, [folder], cluster="c")
    done = list[str]()

    def killed(plain: Any) -> Any:
        def call(self: Lake, table: Any, *arguments: Any, **named: Any) -> Any:
            if table.name == "findings":
                raise Killed
            if table.name in DERIVED:
                done.append(table.name)
            return plain(self, table, *arguments, **named)

        return call

    watch = Stream(spark, lake, cluster="c", folders=[folder])
    with monkeypatch.context() as patched:
        patched.setattr(Lake, "replace", killed(Lake.replace))
        patched.setattr(Lake, "renew", killed(Lake.renew))
        with pytest.raises(Killed):
            watch.once()
    before = versions(lake)
    summary = Stream(spark, lake, cluster="c", folders=[folder]).once()
    assert summary.new_files == 0
    assert done
    assert all(versions(lake)[name] == before[name] for name in done)
    assert contents(lake, *TABLES) == contents(whole, *TABLES)


def test_list_of_files_keeps_the_newest_state_of_a_log(
    spark: SparkSession, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log grows in every round, for months; also when the round that read it was killed."""
    lake, log = Lake(tmp_path / "tables"), folder / "it's_0.log"
    log.write_text("".join(lines(3, group="first")))
    run(spark, lake, [folder], cluster="c", only_bronze=True)
    log.write_text("".join(lines(3, 4, group="first")))
    with monkeypatch.context() as patched:
        patched.setattr(snapshots, "rows", _killed)
        with pytest.raises(Killed):
            run(spark, lake, [folder], cluster="c", only_bronze=True)
    run(spark, lake, [folder], cluster="c", only_bronze=True)
    rows = lake.rows(TABLES["evidence_file"], "c").to_pylist()
    assert sorted((row["source"], row["size"]) for row in rows) == sorted(
        (path.name, path.stat().st_size) for path in folder.iterdir()
    )
    assert run(spark, lake, [folder], cluster="c", only_bronze=True).new_files == 0


def test_what_files_have_grown_since_a_killed_run_is_taken_in_with_the_batch_that_it_began(
    spark: SparkSession, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The begun batch ends with the files that are as they were; the others come in the same run."""
    lake, whole, log = Lake(tmp_path / "tables"), Lake(tmp_path / "whole"), folder / "broker-1.log"
    add = Lake.add

    def killed_before(name: str) -> Any:
        def killed(self: Lake, table: Any, *arguments: Any, **named: Any) -> bool:
            if table.name == name:
                raise Killed
            return add(self, table, *arguments, **named)

        return killed

    grown = 3
    for name in ("log_event", "cluster_snapshot"):  # Before its rows, and after them.
        grown += 1
        log.write_text("".join(lines(*range(3, grown), group="h")))
        with monkeypatch.context() as patched:
            patched.setattr(Lake, "add", killed_before(name))
            with pytest.raises(Killed):
                run(spark, lake, [folder], cluster="c", only_bronze=True)
    log.write_text("".join(lines(*range(3, grown + 1), group="h")))
    run(spark, lake, [folder], cluster="c", only_bronze=True)
    run(spark, whole, [folder], cluster="c", only_bronze=True)
    names = ("log_event", "cluster_snapshot")
    assert contents(lake, *names) == contents(whole, *names)
    assert _states(lake) == _states(whole)


def _states(lake: Lake) -> dict[str, int]:
    rows = lake.rows(TABLES["evidence_file"], "c").to_pylist()
    return {row["path"]: row["size"] for row in sorted(rows, key=lambda row: row["batch"])}


def _killed(*_: object, **__: object) -> None:
    raise Killed


class _Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_stream_spends_a_quarter_of_its_time_on_tables_and_makes_them_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are made of all there is: the more there is, the longer it takes. Bronze is filled meanwhile."""
    clock, stopped, rounds, made = _Clock(), threading.Event(), list[float](), list[tuple[float, int]]()
    followed = list[float]()

    def round_of(*_: object, **__: object) -> Summary:
        rounds.append(clock.now)
        clock.now += 10
        if len(rounds) == 200:
            stopped.set()
        return Summary(cluster="c")

    def slowly(_: object, summary: Summary, *, jobs: object = None) -> bool:
        summary.tables["commit_timeline"] = 0
        if jobs is not None:  # Only those that follow step by step.
            followed.append(clock.now)
            clock.now += 1
            return True
        made.append((clock.now, len(rounds)))
        clock.now += 40 + len(rounds)
        return True

    monkeypatch.setattr(stream, "time", clock)
    monkeypatch.setattr(stream, "run", round_of)
    monkeypatch.setattr(stream, "make_derived", slowly)
    monkeypatch.setattr(stream, "number_of", lambda *_: len(rounds))
    monkeypatch.setattr(Lake, "files", lambda *_: ["something"])
    monkeypatch.setattr(Stream, "_tidy", lambda _: None)
    Stream(None, Lake(tmp_path), cluster="c", folders=[tmp_path], every_s=0).run(stopped)  # type: ignore[arg-type]
    *regular, last = [count for _, count in made]
    assert last == 200
    busy = sum(40 + count for count in regular)
    assert len(regular) > 5
    assert busy < 0.3 * clock.now
    assert len(rounds) == 200
    assert len(followed) + len(regular) == 200, "tables that follow step by step are made in every round"
