"""As `killed_runs`, with tables on a file system that a URL names: `python -m … DISK LAKES`.

A step is each request that changes something there, before it is made and after it; and the moments before
and after each commit of a table, which deltalake makes itself.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kelpie.pipeline.storage.lake import Lake
from kelpie.places import Place, place_of
from kelpie.places.hdfs import Hdfs
from kelpie.places.objects import Objects
from tests.pipeline.decoding.whole_segments import read_bytes
from tests.pipeline.sources.segments.segments import Here, batches, ingest

_CHANGES = ("write", "create", "upload", "rename", "delete")


def run(disk: Path, folder: Place, last_step: int | None) -> None:
    """Killed at the beginning of this step; or not at all."""
    steps = 0

    def step() -> None:
        nonlocal steps
        if steps == last_step:
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 1

    def stepwise(plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            step()
            done = plain(*arguments, **named)
            step()
            return done

        return call

    for kind, names in ((Hdfs, _CHANGES), (Objects, _CHANGES), (Lake, ("add", "delete"))):
        for name in names:
            setattr(kind, name, stepwise(getattr(kind, name)))
    ingest(Lake(folder), [disk], Here())


def child(disk: Path, folder: Place, last_step: int | None) -> int:
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


def main(disk: Path, lakes: Place) -> None:
    """For each step a lake of its own: killed there, some of them there once more, then left alone."""
    read_bytes(batches(0, 1))  # Compiled code is loaded once, for all children.
    step = 0
    while True:
        folder = lakes / f"killed-at-{step}"
        ended = child(disk, folder, step)
        assert ended in (0, signal.SIGKILL), ended
        if not ended:
            break
        if step % 3 == 0:
            child(disk, folder, step)
        assert child(disk, folder, None) == 0
        step += 1
    sys.stdout.write(f"{step}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), place_of(sys.argv[2]))
