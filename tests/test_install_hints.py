"""Texts that tell a user what to install name this project's package and one of its extras."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
_HINT = re.compile(r"""pip install\s*(?:"\s*f?")?\s*'([^']+)'""")
_KELPIE = re.compile(r"pip install (?:\W*)kelpie")


def _texts() -> dict[str, str]:
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}


def test_every_hint_names_the_package_and_an_extra_of_it() -> None:
    """`pip install 'kelpie[pipeline]'` installs somebody else's package, or none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    allowed = {f"{project['name']}[{extra}]" for extra in project["optional-dependencies"]}
    hints = [(name, hint) for name, text in _texts().items() for hint in _HINT.findall(text)]
    assert {name for name, _ in hints} >= {"src/kelpie/cli/doctor.py", "docs/pipeline.md"}
    assert [(name, hint) for name, hint in hints if hint not in allowed] == []
    unquoted = [name for name, text in _texts().items() if _KELPIE.search(text) and not _HINT.search(text)]
    assert unquoted == []
