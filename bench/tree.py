"""What a command costs, with every process that it starts: CPU seconds, and the most memory at a time.

Processes are known by their session, which they keep when their parent ends, as the JVM of Spark does. They
are looked at ten times a second: what a process uses after the last look at it is missing.
"""

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAUSE_S = 0.1
_LOOKS_PER_MEMORY = 3
"""The kernel must walk through all of a process's memory to tell how much is its own."""


@dataclass(slots=True)
class Cost:
    cpu_s: float
    peak_mib: float
    output: str = ""


@dataclass
class _Watch:
    session: int
    ended: threading.Event = field(default_factory=threading.Event)
    cpu: dict[int, float] = field(default_factory=dict)
    peak_kib: int = 0

    def look(self) -> None:
        looks = 0
        while True:
            there = dict(_of_session(self.session))
            self.cpu |= there
            if looks % _LOOKS_PER_MEMORY == 0:
                self.peak_kib = max(self.peak_kib, sum(map(_own_kib, there)))
            if self.ended.is_set() and not there:
                return
            looks += 1
            time.sleep(_PAUSE_S)


def cost(command: Sequence[str], *, count: bytes | None = None, timeout_s: float = 1800) -> Cost:
    """Run a command. Its output is kept; or, with `count`, only how often that comes in it."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        assert process.stdout is not None
        watch = _Watch(process.pid)
        watcher = threading.Thread(target=watch.look)
        watcher.start()
        limit = threading.Timer(timeout_s, process.kill)
        limit.start()
        try:
            if count is None:
                output = process.stdout.read().decode()
            else:
                output = str(sum(line.count(count) for line in process.stdout))
            code = process.wait()
        finally:
            limit.cancel()
            watch.ended.set()
            watcher.join()
    if code:
        raise RuntimeError(f"{' '.join(command[:4])} … ended with {code}; run it by hand to see why")
    return Cost(sum(watch.cpu.values()), watch.peak_kib / 1024, output)


def cpu_of(pid: int) -> float:
    """CPU seconds of one process so far, all its threads."""
    fields = _fields(pid)
    return 0.0 if fields is None else (int(fields[11]) + int(fields[12])) / _TICKS


def cpu_of_session() -> float:
    """CPU seconds so far of all processes of this one's session: those that ended are missing."""
    return sum(cpu_by_process().values())


def cpu_by_process() -> dict[int, float]:
    """The same, by process."""
    return dict(_of_session(os.getsid(0)))


def _of_session(session: int) -> Iterator[tuple[int, float]]:
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            fields = _fields(int(entry))
            if fields is not None and int(fields[3]) == session and fields[0] != "Z":
                yield int(entry), (int(fields[11]) + int(fields[12])) / _TICKS


def _fields(pid: int) -> list[str] | None:
    """Of /proc/PID/stat, from the state on: the name before it may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _own_kib(pid: int) -> int:
    """Memory of a process; what several share counts with its part."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
