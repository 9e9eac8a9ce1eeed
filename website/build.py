"""Makes the site of the documentation: pages and configuration for the generator, the generator, the links.

The generator wants all pages in one folder. Pages that stand in the root of the repository, where people look
for them, are copied to the others, and links between the two are changed accordingly.
"""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from website.links import Links, examine
from website.navigation import entries

ROOT = Path(__file__).resolve().parent.parent
FROM_ROOT = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "ROADMAP.md": "roadmap.md",
    "SECURITY.md": "security.md",
}
_LINK = re.compile(r"(?<=\]\()(?P<up>\.\./)?(?P<path>[^)#\s:]+)(?=[)#])")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LIMIT_S = 300.0


class BuildFailed(Exception):
    """The generator refused the pages; the text says what it said."""


@dataclass(frozen=True, slots=True)
class Folders:
    """What a build writes, all below one folder: the generator accepts nothing outside of it."""

    below: Path

    @property
    def source(self) -> Path:
        return self.below / "site-source"

    @property
    def site(self) -> Path:
        return self.below / "site"

    @property
    def configuration(self) -> Path:
        return self.below / "site.yml"


def build(below: Path) -> tuple[Path, Links]:
    """Make the site below a folder. Where it is, and what its links are."""
    folders = Folders(below.resolve())
    for folder in (folders.source, folders.site):
        shutil.rmtree(folder, ignore_errors=True)
    stage(folders.source)
    # JSON is YAML, and YAML is what the generator reads beside TOML.
    folders.configuration.write_text(json.dumps(configuration(folders), indent=1), encoding="utf-8")
    _generate(folders.configuration)
    return folders.site, examine(folders.site)


def stage(source: Path) -> None:
    """All pages in one folder, with links as they are there."""
    shutil.copytree(ROOT / "docs", source)
    for page in source.glob("*.md"):
        page.write_text(_with_links(page.read_text(encoding="utf-8"), inside=True), encoding="utf-8")
    for name, copy in FROM_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        (source / copy).write_text(_with_links(text, inside=False), encoding="utf-8")


def _with_links(text: str, *, inside: bool) -> str:
    def changed(found: re.Match[str]) -> str:
        path = found["path"]
        if bool(found["up"]) == inside and path in FROM_ROOT:
            return FROM_ROOT[path]
        return path.removeprefix("docs/") if not inside and not found["up"] else found[0]

    return _LINK.sub(changed, text)


def configuration(folders: Folders) -> dict[str, object]:
    return {
        "site_name": "Kelpie",
        "site_description": "Which Kafka consumer groups are not consuming, why, and what to do now.",
        "docs_dir": folders.source.name,
        "site_dir": folders.site.name,
        "use_directory_urls": False,  # Pages open from a folder, too, without a server.
        "nav": entries(folders.source),
        "theme": {
            "font": False,  # The reader's own: the generator's would come from another host.
            "language": "en",
            "features": ["content.code.copy", "navigation.footer", "navigation.top", "search.highlight"],
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default"},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate"},
            ],
        },
    }


def _generate(configuration_file: Path) -> None:
    """Run the generator. It works offline, and its warnings are failures."""
    command = [
        sys.executable,
        "-m",
        "zensical",
        "build",
        "--strict",
        "--clean",
        "-f",
        str(configuration_file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    said = _COLOURS.sub("", done.stderr)
    if done.returncode:
        raise BuildFailed(said.partition("Traceback")[0].strip() or said.strip())
