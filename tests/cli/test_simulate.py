"""kelpie simulate attribution: a table that fits its terminal, JSON, and a picture."""

import json
import subprocess
import sys
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


def test_the_picture_is_svg_or_png_by_its_suffix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One run can draw both. Letters of the SVG are letters: a row per scenario, a column per plan."""
    svg, png = tmp_path / "plans.svg", tmp_path / "plans.PNG"
    assert main([*QUICK, "--picture", str(svg), "--picture", str(png)]) == 0
    root = ElementTree.fromstring(svg.read_text(encoding="utf-8"))
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"finder-restart", "kill-9", "connection", "incarnation", "right", "wrong"} <= set(texts)
    assert png.read_bytes().startswith(b"\x89PNG")


def test_the_same_runs_give_the_same_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Byte by byte: the picture in the documentation can be drawn again and compared."""
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        assert main([*QUICK, "--plan", "join", "--picture", str(tmp_path / name)]) == 0
    for suffix in ("svg", "png"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_without_matplotlib_the_message_names_the_extra(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said before the runs, and only to those who ask for a picture."""
    monkeypatch.setattr("kelpie.cli.pictures.find_spec", lambda name: None)
    assert main([*QUICK, "--picture", str(tmp_path / "x.svg")]) == 64
    said = capsys.readouterr()
    assert "pip install 'kelpie-kafka[plots]'" in said.err
    assert said.out == ""
    assert main(QUICK) == 0


def test_matplotlib_is_loaded_only_for_a_picture() -> None:
    """It takes a second to load, and most runs draw nothing."""
    program = (
        "import sys; from kelpie.cli import main; "
        "main(['simulate', 'attribution', '--seeds', '1', '--scenario', 'pause']); "
        "sys.exit('matplotlib' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=False).returncode
        == 0
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seeds", "0"], "choose 1 to 1,000,000 runs"),
        (["--picture", "/nowhere/x.svg"], "there is no folder /nowhere"),
        (["--picture", "x.pdf"], "ends in .svg or .png"),
    ],
)
def test_mistakes_are_explained(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback for a user's mistake."""
    assert main(["simulate", "attribution", *options]) == 64
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--plan", "nonsense"], "argument --plan: there is no 'nonsense'. Choose connection, join,"),
        (["--scenario", "nonsense"], "argument --scenario: there is no 'nonsense'. Choose "),
        (["--seeds", "many"], "argument --seeds: invalid"),
    ],
)
def test_unknown_names_are_refused(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The choices are named."""
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "attribution", *options])
    assert ended.value.code == 64
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_picture_that_cannot_be_written_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The numbers were printed already; only the file is missing."""
    (tmp_path / "folder.svg").mkdir()
    assert main([*QUICK, "--plan", "join", "--picture", str(tmp_path / "folder.svg")]) == 64
    said = capsys.readouterr()
    assert "cannot be written: Is a directory." in said.err
    assert "join" in said.out
