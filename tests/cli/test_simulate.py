"""kelpie simulate attribution: a table that fits its terminal, JSON, and a picture."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kelpie.cli import main

QUICK = ["simulate", "attribution", "--seeds", "3", "--scenario", "finder-restart", "--scenario", "kill-9"]


@pytest.mark.parametrize("columns", [80, 160])
def test_the_table_fits_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wide terminal also has the shares of fetches."""
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(QUICK) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= columns
    assert "finder-restart: the broker that answered FindCoordinator restarts" in text
    assert "connection" in text
    assert ("uncounted" in text) == (columns == 160)


def test_json_has_every_number(capsys: pytest.CaptureFixture[str]) -> None:
    """For other programs: counts of fetches, and runs with their intervals."""
    assert main([*QUICK, "--plan", "connection", "--plan", "incarnation", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["trials"]
    assert [(row["scenario"], row["plan"]) for row in rows] == [
        ("finder-restart", "connection"),
        ("finder-restart", "incarnation"),
        ("kill-9", "connection"),
        ("kill-9", "incarnation"),
    ]
    assert rows[0]["fetches"]["lost"] > 0
    assert rows[0]["runs"]["lost"] == {
        "runs": 3,
        "share": 1.0,
        "low": pytest.approx(0.4385, abs=1e-4),
        "high": 1.0,
    }
    assert rows[1]["fetches"]["lost"] == rows[3]["fetches"]["wrong"] == 0


def test_seeds_decide(capsys: pytest.CaptureFixture[str]) -> None:
    """The same seeds give the same text, others another."""
    texts = []
    for first in ("0", "0", "50"):
        assert main([*QUICK, "--json", "--first-seed", first]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


def test_the_picture_is_svg(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Well formed, with a bar for each scenario and plan."""
    drawing = tmp_path / "plans.svg"
    assert main([*QUICK, "--svg", str(drawing)]) == 0
    root = ElementTree.fromstring(drawing.read_text(encoding="utf-8"))
    titles = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 10
    assert any(title.startswith("kill-9, connection: ") for title in titles)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seeds", "0"], "choose 1 to 1,000,000 runs"),
        (
            ["--seeds", "1", "--plan", "join", "--scenario", "pause", "--svg", "/nowhere/x.svg"],
            "cannot be written",
        ),
    ],
)
def test_mistakes_are_explained(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback for a user's mistake."""
    assert main(["simulate", "attribution", *options]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--plan", "nonsense"], ["--scenario", "nonsense"], ["--seeds", "many"]])
def test_unknown_names_are_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """argparse names the choices."""
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "attribution", *options])
    assert ended.value.code == 2
    assert "invalid" in capsys.readouterr().err
