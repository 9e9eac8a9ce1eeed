"""The guarded process: started in a session and process group of its own, signalled as a group, reaped."""

import contextlib
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from kelpie.guard.pump import Outlet, Pump
from kelpie.guard.supervision import Ending

Stream = Literal["stdout", "stderr"]
_DRAIN_S = 2.0
_FIRST = 1
"""The number of a container's first process."""
_PROC = "/proc"
_ENDED = ("Z", "X")
_LOOK_S = 0.05
"""How often is looked whether a group is empty: nothing tells it."""


class GuardedProcess:
    """One run. Only the streams in `watched` go through the guard; the process has the others as they are.

    Descriptors that the guard was given beyond standard error are handed on, as if there were no guard.
    """

    def __init__(
        self,
        command: Sequence[str],
        outlets: Mapping[Stream, Outlet],
        on_line: Mapping[Stream, Callable[[str], Any]],
    ) -> None:
        """Raises OSError if it cannot be started."""
        self._child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE if "stdout" in on_line else None,
            stderr=subprocess.PIPE if "stderr" in on_line else None,
            bufsize=0,
            close_fds=False,
            start_new_session=True,
        )
        self.pid = self._child.pid
        self._pumps = []
        for name, pipe in (("stdout", self._child.stdout), ("stderr", self._child.stderr)):
            if pipe is not None:
                stream: Stream = "stdout" if name == "stdout" else "stderr"
                # The pump closes the descriptor, so the file object gets none.
                self._pumps.append(Pump(os.dup(pipe.fileno()), outlets[stream], on_line[stream]))
                pipe.close()
        for pump in self._pumps:
            pump.start()

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def wait(self) -> Ending:
        """Returns when the process has ended and what it wrote has been seen. Reaps it."""
        self._wait_for_end()
        for pump in self._pumps:
            pump.settle(_DRAIN_S)
        status = _reap(self.pid)
        self._child.returncode = os.waitstatus_to_exitcode(status)
        if os.WIFSIGNALED(status):
            return Ending(128 + os.WTERMSIG(status), os.WTERMSIG(status))
        return Ending(os.WEXITSTATUS(status))

    def _wait_for_end(self) -> None:
        """As the first process of a container, the guard inherits orphans: they are reaped on the way."""
        which = (os.P_ALL, 0) if os.getpid() == _FIRST else (os.P_PID, self.pid)
        while True:
            ended = os.waitid(*which, os.WEXITED | os.WNOWAIT)
            assert ended is not None
            if ended.si_pid == self.pid:
                return
            _reap(ended.si_pid)

    def group_is_empty(self) -> bool:
        """Once the process is reaped."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-self.pid, os.WNOHANG)[0]:
                pass  # An orphan that the guard has inherited.
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return _all_ended(self.pid)

    def wait_for_group(self, given_up: threading.Event) -> bool:
        """Returns when the group is empty, or given up."""
        while not given_up.is_set():
            if self.group_is_empty():
                return True
            time.sleep(_LOOK_S)
        return False

    def finish_output(self, limit_s: float) -> None:
        """Waits until all output is passed on, however slowly it is read, within the limit."""
        for pump in self._pumps:
            pump.settle(limit_s)


def _reap(pid: int) -> int:
    return os.waitpid(pid, 0)[1]


def _all_ended(group: int) -> bool:
    """Whether all processes of the group have ended, and only wait to be reaped: not every container has a
    first process that reaps.
    """
    try:
        numbers = [name for name in os.listdir(_PROC) if name.isdigit()]
    except OSError:
        return False  # Not Linux.
    for number in numbers:
        with contextlib.suppress(OSError):
            # "PID (name) STATE PPID PGRP …"; the name may hold anything.
            state, _, of_group, *_ = (
                Path(_PROC, number, "stat").read_text(errors="replace").rpartition(")")[2].split()
            )
            if of_group == str(group) and state not in _ENDED:
                return False
    return bool(numbers)


def end_like(ending: Ending) -> int:
    """Ends the guard by the signal that ended the process; returns the code where there was none.

    The first process of a container cannot end by a signal: then 128 and its number is the code.
    """
    if ending.signal is not None and os.getpid() != _FIRST:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with contextlib.suppress(OSError, ValueError):
            signal.signal(ending.signal, signal.SIG_DFL)
        os.kill(os.getpid(), ending.signal)
    return ending.code if ending.signal is None else 128 + ending.signal
