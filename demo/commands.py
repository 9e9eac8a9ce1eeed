"""Kelpie's commands as a person types them, each in a process of its own.

Each has a process group of its own, too: Ctrl-C reaches the demo alone, which then ends them one by one. So
nothing is left running, whatever is under way.
"""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from demo.shop import DemoFailed
from kelpie.cli.progress import progress

INDENT = "   "
_LIMIT_S = 120.0
_GRACE_S = 10.0


class Answer(NamedTuple):
    status: int
    text: str


def kelpie(*arguments: str, first: int = 1000, last: int = 0, limit_s: float = _LIMIT_S) -> Answer:
    """Run a command, and show it with the first and the last lines of what it says."""
    _announce(arguments)
    with _process(arguments, stdout=subprocess.PIPE) as process, progress(arguments[0], "at work"):
        try:
            said, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"kelpie {arguments[0]} did not end within {limit_s:.0f} s.") from None
    lines = said.rstrip().splitlines()
    if len(lines) > first + last:
        lines = [*lines[:first], "…", *lines[len(lines) - last :]]
    paragraph("\n".join(lines))
    return Answer(process.returncode, said)


def paragraph(text: str, indent: str = INDENT) -> None:
    print(f"\n{textwrap.indent(text, indent)}", flush=True)


@contextmanager
def in_background(*arguments: str) -> Iterator[None]:
    """A command that goes on while the block runs."""
    _announce((*arguments, "&"))
    with _process(arguments, stdout=subprocess.DEVNULL):
        yield


def in_foreground(*arguments: str) -> None:
    """A command that writes to the terminal itself, until Ctrl-C."""
    _announce(arguments)
    with _process(arguments, stdout=None) as process:
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(1.0)


def _announce(arguments: tuple[str, ...]) -> None:
    shown = [Path(argument).name if argument.startswith("/") else argument for argument in arguments]
    paragraph(f"$ kelpie {' '.join(shown)}")


@contextmanager
def _process(arguments: tuple[str, ...], stdout: int | None) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "kelpie", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT if stdout is not None else None,
        text=True,
        env=_environment(),
        process_group=0,
    )
    try:
        yield process
    finally:
        _end(process)


def _environment() -> dict[str, str]:
    columns = shutil.get_terminal_size().columns - len(INDENT)
    colour = {"FORCE_COLOR": "1"} if sys.stdout.isatty() else {}
    return {**os.environ, **colour, "COLUMNS": str(columns)}


def _end(process: "subprocess.Popen[str]") -> None:
    """It may finish what it does; then it, and all that it started, is ended."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def java_is_there() -> bool:
    home = os.environ.get("JAVA_HOME")
    return bool(home and (Path(home) / "bin" / "java").is_file()) or shutil.which("java") is not None
