"""Kelpie for executors that do not have it: the package in one zip file, which Spark distributes.

The libraries that Kelpie needs (`NEEDED`) are compiled for one platform and one Python. Executors must have
them, or get them in an environment (`--archives`).
"""

import hashlib
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from kelpie import folders
from kelpie.places import Place

NEEDED = ("aiokafka", "cramjam", "deltalake", "numba", "numpy", "pandas", "pyarrow")
"""What tasks import beside Kelpie and PySpark."""
_CLIENTS = {"hdfs": "hdfs_native"}
_CLIENT_OF_OBJECTS = "obstore"
ZIP = "kelpie.zip"
"""Spark adds files to Python's path by their suffix, and does not know that of a wheel."""
SCRIPT = "kelpie_pipeline.py"
_BEGIN = """import sys

from kelpie.cli import main

sys.exit(main(["pipeline", *sys.argv[1:]]))
"""
_NEVER = (1980, 1, 1, 0, 0, 0)
"""A fixed time: the same files make the same zip."""


def needed_for(places: Iterable[Place]) -> tuple[str, ...]:
    """What tasks import that read and write there."""
    remote = [place.scheme for place in places if not isinstance(place, Path)]
    return (*NEEDED, *sorted({_CLIENTS.get(scheme, _CLIENT_OF_OBJECTS) for scheme in remote}))


def package() -> Path:
    """A zip of this package, from which `import kelpie` works; made once for each version of its files."""
    files = list(_files(resources.files("kelpie"), "kelpie"))
    folder = _folder(files)
    if not _holds(folder / ZIP, files):
        with tempfile.TemporaryDirectory(dir=folder) as draft:
            made = Path(draft) / ZIP
            with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
                for name, content in files:
                    target.writestr(zipfile.ZipInfo(name, _NEVER), content, zipfile.ZIP_DEFLATED)
            made.rename(folder / ZIP)
    return folder / ZIP


def script() -> Path:
    """The script that spark-submit runs: `kelpie pipeline` from the zip beside it."""
    path = package().with_name(SCRIPT)
    path.write_text(_BEGIN)
    return path


def python_of(archives: str | None) -> str:
    """Python for executors: that of the environment in `archives`, or the one that runs this."""
    if not archives:
        return sys.executable
    name = archives.rpartition("#")[2] if "#" in archives else Path(archives).name
    return f"./{name}/bin/python"


def _files(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        inside = f"{name}/{item.name}"
        if item.is_dir():
            if item.name != "__pycache__":
                yield from _files(item, inside)
        elif not item.name.endswith(".pyc"):
            yield inside, item.read_bytes()


def _holds(path: Path, files: list[tuple[str, bytes]]) -> bool:
    """Whether this is the zip of these files: executors run what is in it."""
    try:
        with zipfile.ZipFile(folders.trusted(path)) as made:
            sizes = {info.filename: info.file_size for info in made.infolist()}
            if sizes != {name: len(content) for name, content in files}:
                return False
            return all(made.read(name) == content for name, content in files)
    except (OSError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError):
        return False


def _folder(files: list[tuple[str, bytes]]) -> Path:
    digest = hashlib.sha256()
    for name, content in files:
        digest.update(f"{name} {len(content)} ".encode())
        digest.update(content)
    try:
        folder = folders.trusted_cache("shipped", digest.hexdigest()[:16])
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:  # The cache cannot be written, or others may write it.
        return Path(tempfile.mkdtemp(prefix="kelpie-shipped-"))
    return folder
