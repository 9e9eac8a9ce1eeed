"""Width, colour and progress, on streams that are terminals and on those that are not."""

import io
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.cli.progress import StatusLine
from kelpie.cli.terminal import folded, has_colour, terminal_width, text_width
from kelpie.cli.text_table import fitting, text_table

_DESCRIBED = """Topic: __consumer_offsets	PartitionCount: 1	ReplicationFactor: 1	Configs:
	Topic: __consumer_offsets	Partition: 0	Leader: none	Replicas: 2	Isr: 2
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have settings of their own."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize(
    ("columns", "text", "table"),
    [
        (None, 80, None),
        ("100", 100, 100),
        ("300", 120, 300),
        ("10", 40, 10),
        ("0", 80, None),
        ("x", 80, None),
    ],
)
def test_width_is_that_of_columns(
    columns: str | None, text: int, table: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sentences are neither too wide to read nor too narrow to be words; tables use all there is."""
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert (text_width(io.StringIO()), terminal_width(io.StringIO())) == (text, table)


def test_colour_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR counts first, then FORCE_COLOR; a dumb terminal has none."""
    assert has_colour(Terminal())
    assert not has_colour(io.StringIO())
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert has_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_colour(io.StringIO())
    assert not has_colour(Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not has_colour(Terminal())


def test_errors_are_folded_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that reads standard error finds a message in one line; quoted lines stay as they are."""
    text = "A sentence that is longer than forty columns.\n  | a line of a log that stays as it was, whole"
    assert folded(text, "kelpie x: ").splitlines() == [
        f"kelpie x: {text.splitlines()[0]}",
        text.splitlines()[1],
    ]
    monkeypatch.setenv("COLUMNS", "40")
    assert folded(text, "kelpie x: ").splitlines() == [
        "kelpie x: A sentence that is longer than",
        "          forty columns.",
        "  | a line of a log that stays as it was, whole",
    ]


def test_columns_of_wide_letters_stand_straight() -> None:
    """Names of groups in Chinese are as wide as they look."""
    table = text_table([("GROUP", "LAG"), ("订单服务", "1"), ("billing", "22")])
    assert table.splitlines() == ["GROUP     LAG", "订单服务  1", "billing   22"]
    narrow, left_out = fitting(["GROUP", "LAG"], [["订单服务", "1"]], ["LAG"], 12)
    assert (narrow.splitlines(), left_out) == (["GROUP", "订单服务"], ["LAG"])


def test_a_last_cell_that_is_too_wide_goes_on_below_itself() -> None:
    """Reasons are sentences. Where there is hardly room, lines are longer instead."""
    rows = [("GROUP", "HEALTHY"), ("billing", "no: broker 2 is dead and nobody leads (KLP101)"), ("a", "yes")]
    assert text_table(rows, 35).splitlines() == [
        "GROUP    HEALTHY",
        "billing  no: broker 2 is dead and",
        "         nobody leads (KLP101)",
        "a        yes",
    ]
    assert max(map(len, text_table(rows, 10).splitlines())) <= 9 + 20
    assert text_table(rows, 200) == text_table(rows)


def test_the_status_line_is_rewritten_and_cleared() -> None:
    """Nothing of it stays on the screen, and a name in it drives no terminal."""
    to, written = Terminal(), threading.Event()

    def text() -> str:
        written.set()
        return "kelpie: \x1b[2J" + "x" * 100

    with StatusLine(text, to, silent_s=0.0).shown():
        assert written.wait(30)
    lines = to.getvalue().split("\r\x1b[K")
    assert lines[0] == ""
    assert lines[1].startswith("kelpie: \\x1b[2Jxxx")
    assert len(lines[1]) == 79
    assert lines[-1] == ""


def test_what_is_quick_shows_no_status_line() -> None:
    """And a file never has one."""
    to, file = Terminal(), io.StringIO()
    with StatusLine(lambda: "never", to, silent_s=60).shown(), StatusLine(lambda: "never", file, 0.0).shown():
        pass
    assert "never" not in to.getvalue()
    assert file.getvalue() == ""


def _on_a_terminal(words: Sequence[str], columns: int) -> str:
    """What a real terminal of that width is told."""
    master, slave = pty.openpty()
    os.set_inheritable(slave, True)
    subprocess.run(["stty", "cols", str(columns)], stdin=slave, check=True, timeout=60)
    with subprocess.Popen(
        [sys.executable, "-m", "kelpie", *words], stdout=slave, stderr=slave, stdin=slave
    ) as child:
        os.close(slave)
        told = b""
        while True:
            try:
                part = os.read(master, 65_536)
            except OSError:  # The other side is closed.
                break
            if not part:
                break
            told += part
        child.wait(60)
    os.close(master)
    return told.decode()


@pytest.mark.parametrize("columns", [60, 110])
def test_a_terminal_is_used_as_wide_as_it_is(columns: int) -> None:
    """Its width is asked of it, where COLUMNS does not say."""
    told = _on_a_terminal(["explain", "KLP101"], columns).splitlines()
    assert columns - 15 < max(map(len, told)) <= columns
    error = _on_a_terminal(["doctor", "--code", "KLP999", "-b", "127.0.0.1:1"], columns).splitlines()
    assert columns - 30 < max(map(len, error)) <= columns


def test_colour_of_the_doctor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into a file only if FORCE_COLOR asks for it."""
    (tmp_path / "topics.txt").write_text(_DESCRIBED)
    words = ["doctor", "--evidence", str(tmp_path), "--no-store"]
    main(words)
    plain = capsys.readouterr().out
    assert "\x1b" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    main(words)
    forced = capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main(words)
    assert capsys.readouterr().out == plain
    assert "\x1b[31;1mCRITICAL\x1b[0m" in forced
    assert re.sub(r"\x1b\[[0-9;]*m", "", forced) == plain
