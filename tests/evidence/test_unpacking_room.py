"""Folders of processes that were killed are removed; those in use, and those of others, are not."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from kelpie.evidence.unpacking_room import unpacking_room

_HOLDS = (
    "import sys\n"
    "from kelpie.evidence.unpacking_room import unpacking_room\n"
    "with unpacking_room() as room:\n"
    "    (room / 'big').write_text('x')\n"
    "    print(room.parent, flush=True)\n"
    "    sys.stdin.read()\n"
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def _holder(place: Path) -> tuple["subprocess.Popen[str]", Path]:
    environment = {**os.environ, "TMPDIR": str(place)}
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDS],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_folder_of_a_killed_process_is_removed_by_the_next(place: Path) -> None:
    """kill -9 leaves up to 4 GiB; a living process keeps its folder."""
    killed, left = _holder(place)
    living, kept = _holder(place)
    with killed, living:
        killed.send_signal(signal.SIGKILL)
        killed.wait(20)
        assert left.is_dir()
        with unpacking_room() as room:
            assert room.is_dir()
            assert not left.exists()
            assert (kept / "files" / "big").exists()
        assert not room.parent.exists()
        living.communicate(timeout=20)
    assert not list(place.iterdir())


def test_what_may_not_be_ours_stays(place: Path) -> None:
    """A link, a file, and a folder whose process has not taken its lock yet; the latter only for a day."""
    (place / "elsewhere").mkdir()
    (place / "kelpie-evidence-link").symlink_to(place / "elsewhere")
    (place / "kelpie-evidence-file").write_text("x")
    for name, age_s in (("young", 60), ("old", 100_000)):
        folder = place / f"kelpie-evidence-{name}"
        folder.mkdir()
        os.utime(folder, (time.time() - age_s, time.time() - age_s))
    with unpacking_room():
        assert {path.name for path in place.iterdir()} >= {
            "elsewhere",
            "kelpie-evidence-link",
            "kelpie-evidence-file",
            "kelpie-evidence-young",
        }
        assert not (place / "kelpie-evidence-old").exists()
