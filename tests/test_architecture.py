"""ARCHITECTURE.md leads people to files: each path in it exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
_PLACES = (ROOT, ROOT / "src" / "kelpie", ROOT / "src" / "kelpie" / "pipeline")
_PATH = re.compile(r"`((?:[a-z_]+/)+(?:[a-z_]+\.(?:py|md))?|(?:[a-z_]+/)+[a-z_]+)`")


def test_every_path_in_the_architecture_exists() -> None:
    """A moved file whose row stays behind sends a reader nowhere."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    paths = set(_PATH.findall(text))
    assert len(paths) > 60
    missing = {
        path
        for path in paths
        if not any((place / path).exists() or (place / f"{path}.py").exists() for place in _PLACES)
    }
    assert not missing


def test_every_package_is_on_the_map() -> None:
    """A package that is not on the map is one that nobody finds."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    layout = text[: text.index("## Four ways")]
    packages = [path.parent.name for path in (ROOT / "src" / "kelpie").glob("*/__init__.py")]
    assert {name for name in packages if f"\n  {name}/" not in layout} == set()
