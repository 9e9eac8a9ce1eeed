"""Runs `ingest` again and again in children that are killed, each one step later: `python -m … DISK LAKES`.

A step is whatever Python changes in the lake's folder (an audit hook sees it), and the moments before and
after each commit of a table. With a third argument, each lake begins as a copy of that one, and only the
moments before commits are steps. The parent only forks: Delta's threads do not survive a fork, so it must
have none.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kelpie.pipeline.storage.lake import Lake
from tests.pipeline.decoding.whole_segments import read_bytes
from tests.pipeline.sources.segments.segments import Here, batches, ingest

_STEPS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir"}


def run(disk: Path, folder: Path, last_step: int | None, *, commits_only: bool) -> None:
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

    def stepwise(plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            step()
            done = plain(*arguments, **named)
            if not commits_only:
                step()
            return done

        return call

    Lake.add = stepwise(Lake.add)  # type: ignore[method-assign]
    Lake.delete = stepwise(Lake.delete)  # type: ignore[method-assign]
    if not commits_only:
        sys.addaudithook(seen)
    ingest(Lake(folder), [disk], Here())


def child(disk: Path, folder: Path, last_step: int | None, *, commits_only: bool) -> int:
    """How it ended: 0, or the signal."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            run(disk, folder, last_step, commits_only=commits_only)
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def main(disk: Path, lakes: Path, begun: Path | None = None) -> None:
    """For each step a lake of its own: killed there, some of them there once more, then left alone."""
    read_bytes(batches(0, 1))  # Compiled code is loaded once, for all children.
    step = 0
    while True:
        folder = lakes / f"killed-at-{step}"
        if begun is not None:
            shutil.copytree(begun, folder)
        of_commits = begun is not None
        ended = child(disk, folder, step, commits_only=of_commits)
        assert ended in (0, signal.SIGKILL), ended
        if ended:
            if step % 3 == 0:
                child(disk, folder, step, commits_only=of_commits)
            assert child(disk, folder, None, commits_only=of_commits) == 0
        if not ended:
            break
        step += 1
    sys.stdout.write(f"{step}\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
