"""kelpie simulate zookeeper-rebalance: tables, JSON, pictures, advice."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kelpie.cli import main

COMMAND = ["simulate", "zookeeper-rebalance", "--seeds", "4"]


@pytest.mark.parametrize("more", [["--event", "kill+join"], ["--advise", "--event", "kill+join"]])
def test_the_text_fits_80_columns(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal of an on-call engineer."""
    assert main([*COMMAND, "--members", "4", *more]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "kill+join" in text


def test_json_has_every_number_and_seeds_decide(capsys: pytest.CaptureFixture[str]) -> None:
    """Two members, few retries, a long session: every kill with a join fails, as on real 0.8.2.2."""
    more = ["--members", "2", "--event", "kill+join", "--retries", "2", "--backoff", "500", "--json"]
    texts = []
    for _ in range(2):
        assert main([*COMMAND, *more, "--session-timeout", "30000"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    (row,) = json.loads(texts[0])["trials"]
    assert (row["event"], row["members"], row["failed"]["share"]) == ("kill+join", 2, 1.0)
    assert row["unread_ms"]["median"] > 15_000


def test_the_settings_may_come_from_a_properties_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """zookeeper.sync.time.ms is the back-off that 0.8 takes if none is set. Options count more."""
    path = tmp_path / "consumer.properties"
    path.write_text("zookeeper.session.timeout.ms=8000\nzookeeper.sync.time.ms = 1500\ngroup.id=g\n")
    more = ["--members", "2", "--event", "kill+join", "--properties", str(path), "--retries", "10", "--json"]
    assert main([*COMMAND, *more]) == 0
    (row,) = json.loads(capsys.readouterr().out)["trials"]
    assert (row["session_timeout_ms"], row["backoff_ms"], row["retries"]) == (8_000, 1_500, 10)
    assert row["failed"]["runs"] == 0


def test_advice_has_numbers_of_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    """More retries end the failures of a group that restarts."""
    more = ["--advise", "--members", "3", "--event", "restart-all", "--retries", "2", "--json"]
    assert main([*COMMAND, *more]) == 0
    advice = json.loads(capsys.readouterr().out)
    assert advice["outlasts_a_dead_session"] is False
    assert advice["as_it_is"][0]["failed"]["share"] == 1.0
    first = advice["suggestions"][0]
    assert first["changes"] == ["rebalance.max.retries=6"]
    assert first["trials"][0]["failed"]["runs"] == 0


def test_pictures_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SVG and PNG of the same numbers; a line per event."""
    svg, png = tmp_path / "p.svg", tmp_path / "p.png"
    more = ["--members", "2", "3", "--event", "kill", "--event", "leave"]
    assert main([*COMMAND, *more, "--picture", str(svg), "--picture", str(png)]) == 0
    texts = "".join(ElementTree.parse(svg).getroot().itertext())
    assert "members of the group" in texts
    assert "leave" in texts
    assert png.read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--seeds", "0"], "--seeds 0"),
        (["--members", "0"], "--members 0"),
        (["--members", "2", "--event", "kill+leave"], "needs 3 members"),
        (["--properties", "/nowhere/x"], "cannot be read"),
    ],
)
def test_a_mistake_is_named(more: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback, and what to write instead."""
    assert main([*COMMAND, *more]) == 64
    assert words in capsys.readouterr().err
