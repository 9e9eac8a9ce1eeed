"""Runs `ingest` again and again in children that are killed, each one step later: `python -m … DISK LAKE`.

A step is whatever Python changes in the lake's folder (an audit hook sees it), and the moments before and
after each commit of a table. The parent only forks: Delta's threads do not survive a fork, so it must have
none.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from kelpie.pipeline.decoding.segment import read_bytes
from kelpie.pipeline.lake import Lake
from kelpie.pipeline.sources.segments import ingest
from tests.pipeline.segments import Here, batches

_STEPS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir"}


def run(disk: Path, folder: Path, last_step: int | None) -> None:
    """Killed at the beginning of this step; or not at all."""
    steps = 0

    def step() -> None:
        nonlocal steps
        if steps == last_step:
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 1

    def seen(event: str, arguments: tuple[Any, ...]) -> None:
        reads = event == "open" and not set(arguments[1] or "") & set("wxa")
        if event in _STEPS and str(folder) in str(arguments[0]) and not reads:
            step()

    def add(self: Lake, *arguments: Any, **named: Any) -> bool:
        step()
        done = plain(self, *arguments, **named)
        step()
        return done

    plain = Lake.add
    Lake.add = add  # type: ignore[method-assign]
    sys.addaudithook(seen)
    ingest(Lake(folder), [disk], Here())


def child(disk: Path, folder: Path, last_step: int | None) -> int:
    """How it ended: 0, or the signal."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            run(disk, folder, last_step)
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def main(disk: Path, lakes: Path) -> None:
    """For each step a lake of its own: killed there, killed there once more, then left alone."""
    read_bytes(batches(0, 1))  # Compiled code is loaded once, for all children.
    step = 0
    while True:
        folder = lakes / f"killed-at-{step}"
        ended = child(disk, folder, step)
        assert ended in (0, signal.SIGKILL), ended
        if ended:
            child(disk, folder, step)
            assert child(disk, folder, None) == 0
        if not ended:
            break
        step += 1
    sys.stdout.write(f"{step}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
