"""The comparison with other tools is fair and dated: what was read, when, and what others do better."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "comparison.md"
_DATED = re.compile(r"\b20\d\d-\d\d\b|\b\d+\.\d+\.\d+\b|README")
_OWN = "Kelpie"
_SHORT = {"kafbat": "kafbat UI", "Kafka's tools": "Kafka's own tools", "lag-exporter": "kafka-lag-exporter"}
"""How the heads of columns call tools."""


def _rows(head: str) -> list[list[str]]:
    """The table that begins with this head."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(head))
    table = lines[start:]
    end = next((at for at, line in enumerate(table) if not line.startswith("|")), len(table))
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table[:end] if "---" not in line
    ]


def test_the_page_says_when_tools_were_read_and_which_version() -> None:
    """What was true of a tool once may not be now: readers must be able to see that."""
    assert re.search(r"as read in [A-Z][a-z]+ 20\d\d", PAGE.read_text(encoding="utf-8"))
    undated = [row[0] for row in _rows("| tool | read at")[1:] if not _DATED.search(row[1])]
    assert undated == []


def test_every_tool_that_is_judged_was_read() -> None:
    judged = [name for name in _rows("| | Burrow")[0][1:] if name != _OWN]
    assert {_SHORT.get(name, name) for name in judged} == {row[0] for row in _rows("| tool | read at")[1:]}


def test_the_page_says_what_others_do_better() -> None:
    """A comparison in which its author wins everywhere is none."""
    text = PAGE.read_text(encoding="utf-8")
    assert text.partition("## What others do better")[2].count("\n- **") >= 3
    own = [row[-1] for row in _rows("| | Burrow")[1:]]
    assert "no" in own
