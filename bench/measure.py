"""How the benchmarks measure, and what they hand back."""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Ratio:
    """Kelpie against a peer; above 1, Kelpie is ahead."""

    name: str
    value: float
    peer: str

    def __str__(self) -> str:
        return f"ratio {self.name} {self.value:.2f} {self.peer}"


@dataclass(frozen=True, slots=True)
class Report:
    """What one benchmark found: a table for people, ratios for everyone, and the words in between."""

    title: str
    about: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    ratios: Sequence[Ratio]


class Finished(NamedTuple):
    """A process that has ended."""

    seconds: float
    """From its start to its end."""
    cpu_s: float
    """Of all its threads, in user and kernel mode: on a busy machine it says more than the time."""
    peak_mb: float
    status: int
    output: bytes


_MOST_OUTPUT = 256 << 20
"""Bytes. The longest output is a report on 10,000 groups, some 12 MB."""


def finished(command: Sequence[str]) -> Finished:
    """Runs a command to its end."""
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        output = process.stdout.read(_MOST_OUTPUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    took = time.perf_counter() - begun
    cpu_s = usage.ru_utime + usage.ru_stime
    return Finished(took, cpu_s, usage.ru_maxrss / 1024, process.returncode, output)


def cpu_seconds(contenders: dict[str, Callable[[], object]], rounds: int = 15) -> dict[str, float]:
    """The least CPU time of one call each. They take turns, so that a noisy moment hits all of them alike."""
    repeats = {name: _repeats(call) for name, call in contenders.items()}
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, call in contenders.items():
            best[name] = min(best[name], _timed(call, repeats[name]))
    return best


def _repeats(call: Callable[[], object]) -> int:
    """So many calls that one measurement is well above the clock's step."""
    once = max(_timed(call, 1), 1e-7)
    return max(1, int(0.02 / once))


def _timed(call: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats
