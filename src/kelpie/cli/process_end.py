"""The process of a command: how `python -m kelpie` and the script `kelpie` begin, and how they end.

At its end Python frees each object by itself. The rows, cases and findings of 10,000 groups take it 0.3 s, a
tenth of `kelpie doctor`, and then the kernel takes back the memory as a whole. A command that holds so much
hands it to `leave_to_the_kernel`, and the process ends without freeing.

Everything else that belongs to an end is done before: threads have ended, and all functions that were
registered with `atexit` have been called, because the first to be registered is the last to be called. If
somebody has registered before (a debugger, a measurement of coverage), or the command raises an exception,
the process ends in the usual way.
"""

import atexit
import os
import sys
from typing import NoReturn

from kelpie.cli import main


class _End:
    def __init__(self) -> None:
        self.is_ours = False
        """Whether the process runs a command and nothing else, so that it may end after it."""
        self.held: list[object] = []
        self.status: int | None = None
        """None: the command has not ended, or by an exception."""

    def __call__(self) -> None:
        if not self.held or self.status is None:
            return
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                return  # None, broken or closed: Python's own end says so, if anything must be said.
        os._exit(self.status)


_end = _End()


def run() -> NoReturn:
    """Runs the command that the process was started with, and ends the process."""
    _end.is_ours = getattr(atexit, "_ncallbacks", lambda: 1)() == 0
    if _end.is_ours:
        atexit.register(_end)
    status = main()
    _end.status = status
    raise SystemExit(status)


def leave_to_the_kernel(*objects: object) -> None:
    """Keeps these until the process ends, and does not free them then. Nothing else ends with them: each file
    is closed by whoever opened it.

    It does nothing where a program calls `main`: that goes on after the command.
    """
    if _end.is_ours:
        _end.held += objects
