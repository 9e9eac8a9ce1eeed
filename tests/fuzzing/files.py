"""Broken files of every kind that Kelpie reads: they give rows, and reasons for what is not read.

One run is one file: a small piece of a real one (`files_seeds`), mutated, and read as the command would read
it, without the net that catches defects there. Forbidden are exceptions that are not Kelpie's own, more CPU
time than any file of a kilobyte needs, memory that grows with the file's claims, and rows that cannot be
shown or kept.
"""

import json
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from kelpie import acknowledgements
from kelpie.client import java_properties
from kelpie.client.client_errors import BadSettings
from kelpie.client.properties import settings_of
from kelpie.evidence.archives import Budget
from kelpie.evidence.files import Search
from kelpie.evidence.folder import _Gathered, _read, _together
from kelpie.evidence.logs.hints import NO_HINTS
from kelpie.evidence.snapshot_files import Torn
from kelpie.evidence.zookeeper_dumps import NoDump
from kelpie.model.time import iso_time
from kelpie.observations.encoding import dumps, rows_of
from kelpie.repair import change_records, offsets_file
from kelpie.repair.plan import CannotRepair
from kelpie.store import Store
from kelpie.store_files import StoreFiles
from tests.fuzzing.files_seeds import CLUSTER, TIME, Seed, seeds
from tests.fuzzing.mutation import EDGES, mutated, peak_mib, run_seeds

MOST_CPU_S = 10.0
"""For a file of some kilobytes. It is a watchdog, and no measure: a file takes a millisecond."""
MOST_MIB = 120.0
"""That a few files may add to the most memory that the process has had."""
FILES_BETWEEN_LOOKS = 16
MOST_UNPACKED, MOST_FILES = 8_000_000, 60
WORDS = (
    *EDGES,
    b"9" * 5000,
    b"-1",
    b"9223372036854775807",
    b"1e400",
    b"NaN",
    b"[" * 3000,
    b'{"a":' * 2000,
    b"\n",
    b"\x1b[2J",
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    "²٣".encode(),
    b'Group "',
    b", ",
    b" - ",
    b"9999-12-31 23:59:59,999",
    b"0001-01-01T00:00:00Z",
)
"""What makes readers stumble: long numbers, nested brackets, control characters, times at the edges."""


class Slow(Exception):
    """A file took more CPU time than any may."""


class Grown(Exception):
    """A file made the process grow."""


class Fuzz:
    """Reads one broken file after the other."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "file"
        self._room = folder / "room"
        self._room.mkdir()
        self._paths = {seed.name: folder / "files" / seed.name for seed in seeds()}
        for path in self._paths.values():
            path.parent.mkdir(parents=True, exist_ok=True)
        self._contents = [seed.content for seed in seeds()]
        self._peak = 0.0
        self.kinds: Counter[str] = Counter()
        self.rows = 0

    def run(self, chance: Random) -> None:
        seed = chance.choice(seeds())
        content = mutated(seed.content, chance, edges=WORDS, others=self._contents)
        self.kinds[seed.kind] += 1
        _set_watchdog(MOST_CPU_S)
        READERS[seed.kind](self, seed, content)
        if self.kinds.total() % FILES_BETWEEN_LOOKS == 0:
            before, self._peak = self._peak, peak_mib()
            if before and self._peak > before + MOST_MIB:
                raise Grown(
                    f"{self._peak - before:.0f} MiB within {FILES_BETWEEN_LOOKS} files up to this one"
                )

    def read_evidence(self, seed: Seed, content: bytes) -> None:
        path = self._paths[seed.name]
        path.write_bytes(content)
        gathered, budget = _Gathered(), Budget(MOST_UNPACKED, MOST_FILES)
        search = Search(self._room, budget)
        for file in search.files([path]):
            with suppress(Torn, NoDump):
                reason = _read(file, gathered, NO_HINTS)
                assert reason != "", "an empty reason"
        observations = _together(gathered)
        observations.unasked += search.unasked
        for _, row in rows_of(observations):
            self.rows += 1
            json.loads(dumps(row))
            at = getattr(row, "at", None)
            if at is not None:
                iso_time(at)
        if budget.files_left < MOST_FILES:
            shutil.rmtree(self._room)
            self._room.mkdir()

    def read_store(self, _: Seed, content: bytes) -> None:
        folder = self._file.parent / "store"
        path = StoreFiles(folder, []).of(CLUSTER)
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        try:
            store = Store(folder)
            for _kind, row in rows_of(store.recall(CLUSTER, TIME)):
                self.rows += 1
                dumps(row)
            store.found(CLUSTER)
        finally:
            shutil.rmtree(folder)

    def read_undo(self, _: Seed, content: bytes) -> None:
        self._file.write_bytes(content)
        record = change_records._read(self._file)
        if record is not None:
            assert record.id
            assert record.file.name

    def read_acknowledgements(self, _: Seed, content: bytes) -> None:
        with suppress(acknowledgements.UnreadableAcknowledgements):
            known = acknowledgements.parsed(content.decode("utf-8", "replace"), "here")
            acknowledgements.written(known)

    def read_offsets(self, _: Seed, content: bytes) -> None:
        with suppress(CannotRepair):
            offsets_file.read(content.decode("utf-8", "replace"), "billing", "here")

    def read_properties(self, _: Seed, content: bytes) -> None:
        with suppress(BadSettings):
            settings_of(java_properties.parse(content))


READERS: dict[str, Callable[[Fuzz, Seed, bytes], None]] = {
    "evidence": Fuzz.read_evidence,
    "undo": Fuzz.read_undo,
    "store": Fuzz.read_store,
    "acknowledgements": Fuzz.read_acknowledgements,
    "offsets": Fuzz.read_offsets,
    "properties": Fuzz.read_properties,
}


def _set_watchdog(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


def _stop(*_: object) -> None:
    raise Slow


def fuzz_files(count: int) -> Fuzz:
    """Reads so many broken files, with the seeds from 1 on. A failure names its seed."""
    memory = Path("/dev/shm")  # A million files would only wear a disk.
    folder = Path(tempfile.mkdtemp(prefix="kelpie-fuzz-", dir=memory if memory.is_dir() else None))
    handler = signal.signal(signal.SIGVTALRM, _stop)
    try:
        fuzz = Fuzz(folder)
        run_seeds(fuzz.run, count, every=max(count // 20, 1000))
        return fuzz
    finally:
        _set_watchdog(0)
        signal.signal(signal.SIGVTALRM, handler)
        shutil.rmtree(folder, ignore_errors=True)
