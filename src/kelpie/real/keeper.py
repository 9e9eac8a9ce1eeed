import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

from kelpie.real.cluster_errors import RealError
from kelpie.real.identity import ProcessIdentity

_SOURCES = Path(__file__).parents[2]
_END_LIMIT_S = 30.0


class Keeper:
    """Our end of the pipe to a guardian (see `guardian`)."""

    def __init__(self) -> None:
        self._guardian = subprocess.Popen(
            # -P: ignore a folder named kelpie in the current directory. -S: no site, quick start.
            [sys.executable, "-P", "-S", "-m", "kelpie.real.guardian", str(os.getpid())],
            stdin=subprocess.PIPE,
            bufsize=0,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(_SOURCES)},
            cwd="/",
            # A session of its own: what ends a terminal's foreground processes must spare the guardian.
            start_new_session=True,
        )

    def watch(self, process: ProcessIdentity) -> None:
        self._order("watch", process.pid, process.start)

    def forget(self, process: ProcessIdentity) -> None:
        self._order("forget", process.pid, process.start)

    def own(self, folder: Path) -> None:
        self._order("own", str(folder))

    def release(self) -> None:
        """From now on everything may outlive us."""
        self._finish("release")

    def clean(self) -> None:
        """End what is still watched, remove what is still owned, and wait until that is done."""
        self._finish("clean")

    def _order(self, *order: object) -> None:
        assert self._guardian.stdin is not None
        try:
            self._guardian.stdin.write(json.dumps(order).encode() + b"\n")
            self._guardian.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise RealError(
                f"The guardian process {self._guardian.pid}, which ends real servers when Kelpie dies, "
                "is gone. Start anew."
            ) from None

    def _finish(self, order: str) -> None:
        assert self._guardian.stdin is not None
        if self._guardian.stdin.closed:
            return
        with contextlib.suppress(RealError):  # The process was killed: there is nothing left to stop.
            self._order(order)
        self._guardian.stdin.close()
        self._guardian.wait(_END_LIMIT_S)
