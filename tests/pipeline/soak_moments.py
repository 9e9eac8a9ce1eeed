"""Moments at which a stream is killed: what of its work can be seen in the folder of the tables.

Most of a stream's life is spent deriving, or waiting, and there a kill at random falls. So a kill aims at a
phase: it comes as soon as that one is seen, within a limit. What it left behind is looked at afterwards.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from deltalake import DeltaTable

WRITING, RECORDED, LISTED, TAKING_IN, DERIVING, FINDING = (
    "while a batch of the topic is written",
    "between the page of a batch and its tables",
    "between the list of a batch of files and its end",
    "while files are taken in",
    "while silver is made",
    "while findings are made",
)
PHASES = (WRITING, RECORDED, LISTED, TAKING_IN, DERIVING, FINDING)
_SIGNS = {
    WRITING: ("bronze/*/cluster=*/*.unfinished",),
    RECORDED: ("_batches/topic*/draft-*", "_batches/topic*/*.json"),
    TAKING_IN: ("_staging/logs-*", "_staging/scrapes-*", "_staging/surveys-*", "bronze/*/_written-*"),
    DERIVING: ("silver/*/_written-*",),
    FINDING: (
        *("state/kept_snapshot/cluster=*/*.unfinished", "state/recent_commit/cluster=*/*.unfinished"),
        *("gold/findings/cluster=*/*.unfinished", "gold/group_health/cluster=*/*.unfinished"),
    ),
}


class Watch:
    """One life of a stream, from before its start. What others left behind is not taken for its own."""

    def __init__(self, tables: Path) -> None:
        self._tables = tables
        self._known = {phase: self._signs(phase) for phase in PHASES}

    def wait_for(self, phase: str, limit_s: float, process: subprocess.Popen[bytes]) -> bool:
        """Come back as soon as the phase is seen; whether it was."""
        deadline = time.monotonic() + limit_s
        known = self._signs(phase) if phase == RECORDED else self._known[phase]
        while time.monotonic() < deadline:
            assert process.poll() is None, f"the stream ended by itself, with {process.returncode}"
            if self._signs(phase) - known:
                return True
            time.sleep(0.002)
        return False

    def left_behind(self) -> list[str]:
        """What a stream that was killed had begun and not ended."""
        seen = [phase for phase in PHASES if phase != RECORDED and self._signs(phase) - self._known[phase]]
        return [*seen, *self._in_logs()]

    def _signs(self, phase: str) -> set[tuple[str, int]]:
        if phase == LISTED:
            return set(self._begun_batches())
        found = set()
        for path in (path for sign in _SIGNS[phase] for path in self._tables.glob(sign)):
            with suppress(FileNotFoundError):
                found.add((str(path), path.stat().st_mtime_ns))
        return found

    def _in_logs(self) -> Iterator[str]:
        for folder in self._tables.glob("_batches/topic*"):
            pages = sorted(folder.glob("*.json"))
            page = json.loads(pages[-1].read_text()) if pages else {"files": {}}
            filled = [self._tables / "bronze" / name for name, files in page["files"].items() if files]
            if any(_version(table, unquote(folder.name)) < page["number"] for table in filled):
                yield RECORDED
        for folder in self._tables.glob("_checkpoints/*"):
            if _newest(folder / "offsets") > _newest(folder / "commits"):
                yield "with a batch of the topic planned and not done"

    def _begun_batches(self) -> Iterator[tuple[str, int]]:
        ledger, last = (self._tables / "bronze" / name for name in ("evidence_file", "cluster_snapshot"))
        for cluster in ledger.glob("cluster=*"):
            application = f"kelpie evidence of {cluster.name.partition('=')[2]}"
            begun = _version(ledger, application)
            if begun > _version(last, application):
                yield application, begun


def _version(table: Path, application: str) -> int:
    if not (table / "_delta_log").is_dir():
        return -1
    version = DeltaTable(str(table)).transaction_version(application)
    return -1 if version is None else version


def _newest(folder: Path) -> int:
    return max((int(path.name) for path in folder.glob("*") if path.name.isdecimal()), default=-1)
