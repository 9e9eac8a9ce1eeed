"""Identifies a process by its number and start: the number alone may belong to another process by now.

Imported by the guardian: the standard library only, and little of it.
"""

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    pid: int
    start: str

    @classmethod
    def of(cls, pid: int) -> "ProcessIdentity | None":
        """The living process of that number, if there is one. A zombie is dead: only its parent is late."""
        start = _start_linux(pid) if _PROC.exists() else _start_ps(pid)
        return None if start is None else cls(pid, start)

    @property
    def alive(self) -> bool:
        return ProcessIdentity.of(self.pid) == self

    @property
    def stopped(self) -> bool:
        """Whether SIGSTOP has reached every one of its threads; one that runs may still answer somebody."""
        if not _PROC.exists():
            return _ps(self.pid, "stat").startswith("T")
        try:
            return all(
                _fields(thread / "stat")[0] == "T" for thread in Path(f"/proc/{self.pid}/task").iterdir()
            )
        except OSError:
            return False

    def signal(self, number: int) -> bool:
        """Send a signal to this very process; False when it has gone."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        except (AttributeError, OSError):
            return self._signal_by_pid(number)
        try:
            if not self.alive:
                return False
            # The handle was there before the check, so what was checked is what gets the signal.
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True

    def _signal_by_pid(self, number: int) -> bool:
        if not self.alive:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
            return True
        return False


_PROC = Path("/proc/self/stat")


def _start_linux(pid: int) -> str | None:
    try:
        fields = _fields(Path(f"/proc/{pid}/stat"))
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    if fields[0] in "ZX":
        return None
    return f"{boot}/{fields[19]}"


def _fields(stat: Path) -> list[str]:
    """The command may hold blanks and brackets; the numbers begin after its last bracket (proc(5))."""
    return stat.read_text().rpartition(")")[2].split()


def _start_ps(pid: int) -> str | None:
    shown = _ps(pid, "stat", "lstart").split(maxsplit=1)
    if len(shown) != 2 or shown[0].startswith("Z"):
        return None
    return shown[1].strip()


def _ps(pid: int, *columns: str) -> str:
    return subprocess.run(
        ["ps", *(f"-o{column}=" for column in columns), "-p", str(pid)],  # noqa: S607 - where ps is differs by system
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
    ).stdout
