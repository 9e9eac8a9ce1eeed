"""Texts that tell a user what to install name this project's package and one of its extras."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_INSTALLS = re.compile(
    r"\b(?:pip|pipx|uv pip|uv tool) install(?P<options>(?:\s+--?[\w-]+)*)\s+['\"`]?(?P<what>[^\s'\"`,;)]+)"
)
_OTHER_NAME = re.compile(r"(?<![\w.-])kelpie(?:\[\w|==|>=|~=)")
"""The name alone, as pip takes it: it belongs to somebody else's package."""
_ELSEWHERE = {"uv", "requirements.lock", "."}
"""What developers install."""


def _strings(path: Path) -> Iterator[str]:
    """Texts of a Python file as people see them: pieces on several lines are one text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)  # type: ignore[misc]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _texts() -> dict[str, str]:
    texts: dict[Path, str] = {}
    for folder in ("src", "demo", "bench"):
        texts |= {path: "\n".join(_strings(path)) for path in ROOT.glob(f"{folder}/**/*.py")}
    plain = ["src/**/*.txt", "docs/**/*.*", "*.md", "Makefile", "pyproject.toml", ".github/**/*.y*ml"]
    for pattern in plain:
        texts |= {path: path.read_text("utf-8", "ignore") for path in ROOT.glob(pattern) if path.is_file()}
    return {str(path.relative_to(ROOT)): text for path, text in texts.items()}


@cache
def _allowed() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    return {project["name"], *(f"{project['name']}[{extra}]" for extra in extras), *_ELSEWHERE}


def _wrong(text: str) -> list[str]:
    hints = [found["what"].rstrip(".:") or "." for found in _INSTALLS.finditer(text)]
    return [hint for hint in hints if hint not in _allowed()] + _OTHER_NAME.findall(text)


def test_every_hint_names_the_package_and_an_extra_of_it() -> None:
    """`pip install 'kelpie[pipeline]'` installs somebody else's package, or none."""
    texts = _texts()
    hints = {name for name, text in texts.items() if "kelpie-kafka[" in text}
    assert hints >= {"src/kelpie/cli/doctor.py", "src/kelpie/client/zookeeper.py", "docs/pipeline.md"}
    assert {name: wrong for name, text in texts.items() if (wrong := _wrong(text))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "pip install 'kelpie[pipeline]'",
        "pip install kelpie",
        'Say: pip install "kelpie".',
        "pip install --upgrade kelpie[zookeeper]",
        "pip install 'kelpie-kafka[nothing]'",
        "Install kelpie[pipeline].",
        "kelpie>=0.1",
        "`pip install kelpie-kafka[pipeline]` or pip install kelpie",
    ],
)
def test_a_wrong_hint_is_seen(text: str) -> None:
    """However it is quoted, and also beside a right one."""
    assert _wrong(text)


def test_a_hint_over_several_pieces_is_one_text(tmp_path: Path) -> None:
    """As long lines are written here."""
    file = tmp_path / "code.py"
    file.write_text("print(f'{x}: pip install '\n      'kelpie')\n")
    assert any(_wrong(text) for text in _strings(file))
