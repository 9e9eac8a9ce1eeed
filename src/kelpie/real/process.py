"""One server or tool as a process. It ends when Kelpie ends, and signals reach only this very process."""

import contextlib
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from kelpie.real import java
from kelpie.real.cluster_errors import RealError
from kelpie.real.identity import ProcessIdentity
from kelpie.real.keeper import Keeper

# The shell waits for a line before it becomes the program: by then the guardian knows of it. If we die in
# between, the pipe closes and the shell ends. The number and the start time survive exec.
_GATE = 'IFS= read -r go && exec "$@" <"$0"'

_NOISE = re.compile(r"^\tat |Processing \w{4} command|(Accepted|Closing|Closed) socket connection")
_TAIL_LINES = 15
_TAIL_COLUMNS = 300


class Jvm:
    """A process that we started (and have to reap), or one that an earlier command started."""

    def __init__(self, identity: ProcessIdentity, log: Path) -> None:
        self.identity = identity
        self.log = log
        self._child: subprocess.Popen[bytes] | None = None
        self._keeper: Keeper | None = None
        self._log_start = 0

    @classmethod
    def spawn(
        cls,
        command: Sequence[str],
        *,
        folder: Path,
        log: Path,
        keeper: Keeper,
        errors: Path | None = None,
        stdin: Path = Path("/dev/null"),
    ) -> "Jvm":
        """Start it in a session of its own. Output goes to the log, standard error to `errors` if given."""
        with contextlib.ExitStack() as files:
            out = files.enter_context(log.open("ab"))
            child = subprocess.Popen(
                ["/bin/sh", "-c", _GATE, str(stdin), *command],
                stdin=subprocess.PIPE,
                bufsize=0,
                stdout=out,
                stderr=files.enter_context(errors.open("ab")) if errors else out,
                cwd=folder,
                env=java.environment(),
                start_new_session=True,
            )
            assert child.stdin is not None
            with child.stdin:
                identity = ProcessIdentity.of(child.pid)
                if identity is None:
                    child.wait()
                    raise RealError(f"{command[0]} ended before it began (status {child.returncode}).")
                jvm = cls(identity, log)
                jvm._child, jvm._keeper, jvm._log_start = child, keeper, out.tell()
                try:
                    keeper.watch(identity)
                    child.stdin.write(b"go\n")
                except BaseException:
                    jvm.kill()
                    raise
        return jvm

    @property
    def pid(self) -> int:
        return self.identity.pid

    @property
    def alive(self) -> bool:
        return self._child.poll() is None if self._child else self.identity.alive

    @property
    def status(self) -> int | None:
        """The exit status, if it has ended and was our child."""
        return self._child.poll() if self._child else None

    def kill(self) -> None:
        """SIGKILL, as a crash would."""
        self.signal(signal.SIGKILL)
        if not self.wait(30.0):
            raise RealError(f"Process {self.pid} does not end, even after SIGKILL. Is its disk stuck?")

    def pause(self) -> None:
        """SIGSTOP. Returns when no thread runs any more."""
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + 30.0
        while self.alive and not self.identity.stopped:
            if time.monotonic() > deadline:
                raise RealError(f"Process {self.pid} still runs 30 s after SIGSTOP. Is its disk stuck?")
            time.sleep(0.01)

    def signal(self, number: int) -> None:
        if self._child is None:
            self.identity.signal(number)
        else:
            self._child.send_signal(number)  # It is our child and not reaped: the number is still its own.

    def wait(self, limit_s: float) -> bool:
        """Wait for its end; False when it lives on."""
        if self._child:
            try:
                self._child.wait(limit_s)
            except subprocess.TimeoutExpired:
                return False
        else:
            deadline = time.monotonic() + limit_s
            while self.identity.alive:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.02)
        if self._keeper:
            with contextlib.suppress(RealError):
                self._keeper.forget(self.identity)
        return True

    def let_go(self) -> None:
        """It may outlive this process, which no longer waits for it."""
        if self._child:
            self._child.returncode = 0  # Or the interpreter complains at its end about a child still running.
            self._child = None
        self._keeper = None

    def said(self) -> str:
        """What it has written to its log since this start."""
        try:
            with self.log.open("rb") as file:
                file.seek(self._log_start)
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def tail(self) -> str:
        """The end of that, without stack frames and without the lines that our own probes cause."""
        lines = [line for line in self.said().splitlines() if line.strip() and not _NOISE.search(line)]
        return "\n".join(f"  | {line[:_TAIL_COLUMNS]}" for line in lines[-_TAIL_LINES:]) or "  | (nothing)"
