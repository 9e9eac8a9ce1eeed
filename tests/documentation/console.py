"""Runs what a page of the documentation tells its reader to type, and compares what comes with what it shows.

Blocks of the kind `console` are run, in the order of the page: a line that begins with $ is typed, the lines
below it are what must come. `…` stands for anything: alone on a line for any lines, within a line for any
text. A block of Python whose first line is a comment with a file's name is that file.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from kelpie.real.cluster_errors import ClusterRefused
from kelpie.real.ports import require

_BLOCK = re.compile(r"^```(?P<kind>console|python)\n(?P<text>.*?)^```$", re.M | re.S)
_FILE = re.compile(r"# (?P<name>[\w-]+\.py)\b")
_LIMIT_S = 120.0
STAYS = "kelpie lab up"
"""What goes on in a terminal of its own; it is up when it has said all that the page shows."""


@dataclass(frozen=True, slots=True)
class Step:
    line: int
    command: str
    shown: str


def steps(page: str) -> list[Step]:
    """What is typed, with what the page shows of the answer."""
    return [
        step for block in _BLOCK.finditer(page) if block["kind"] == "console" for step in _typed(page, block)
    ]


def files(page: str) -> dict[str, str]:
    """Programs that the page shows in full, by the name of their file."""
    blocks = (block["text"] for block in _BLOCK.finditer(page) if block["kind"] == "python")
    return {found["name"]: text for text in blocks if (found := _FILE.match(text))}


def _typed(page: str, block: re.Match[str]) -> Iterator[Step]:
    line = page.count("\n", 0, block.start("text")) + 1
    for part in re.split(r"^(?=\$ )", block["text"], flags=re.M):
        if part.startswith("$ "):
            command, _, shown = part.removeprefix("$ ").replace("\\\n", "").partition("\n")
            yield Step(line, " ".join(command.split()), shown)
        line += part.count("\n")


def is_as_shown(said: str, shown: str) -> bool:
    """Whether a text is what a page shows of it."""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line.rstrip()).replace("…", ".*") + r"\s*?\n"
        for line in shown.splitlines()
    ]
    return re.fullmatch("".join(lines), said if said.endswith("\n") or not said else f"{said}\n") is not None


class Terminal:
    """Two terminals in a folder: what stays is in one, all the rest in the other.

    Pages name ports; the ports that are used are other ones of as many digits, so that lines are as long.
    """

    def __init__(self, folder: Path, ports: str) -> None:
        self._folder = folder
        self._ports, self._own_ports = ports, free_ports(len(ports))
        self._environment = {**os.environ, "COLUMNS": "80", "KELPIE_STATE": str(folder / "state")}
        self._stack = ExitStack()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text.replace(self._ports, self._own_ports), encoding="utf-8")

    def run(self, step: Step) -> str:
        """What it says, with the ports of the page."""
        words = shlex.split(step.command.replace(self._ports, self._own_ports))
        match words:
            case ["export", assignment]:
                name, _, value = assignment.partition("=")
                self._environment[name] = value
                said = ""
            case ["curl", *options, address]:
                said = _curl(options, address)
            case _ if step.command.startswith(STAYS):
                said = self._start(words, step.shown.replace(self._ports, self._own_ports))
            case _:
                said = self._say(words)
        return said.replace(self._own_ports, self._ports).replace(str(self._folder / "state"), "…")

    def _say(self, words: list[str]) -> str:
        done = subprocess.run(
            _program(words),
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        return done.stdout

    def _start(self, words: list[str], shown: str) -> str:
        output = self._folder / "other-terminal.txt"
        file = self._stack.enter_context(output.open("w"))
        process = subprocess.Popen(
            _program(words), cwd=self._folder, env=self._environment, stdout=file, stderr=subprocess.STDOUT
        )
        self._stack.callback(process.wait, _LIMIT_S)
        self._stack.callback(process.send_signal, signal.SIGINT)
        deadline = time.monotonic() + _LIMIT_S
        while not is_as_shown(said := output.read_text(), shown):
            if time.monotonic() > deadline or process.poll() is not None:
                break
            time.sleep(0.05)
        return said


def _program(words: list[str]) -> list[str]:
    program, *rest = words
    return [sys.executable, *(["-m", "kelpie"] if program == "kelpie" else []), *rest]


def _curl(options: list[str], address: str) -> str:
    """What curl does with these options, where it is not installed too."""
    assert options in (["-s"], ["-s", "-X", "POST"]), options
    with urlopen(Request(address, method="POST" if "POST" in options else "GET"), timeout=_LIMIT_S) as answer:
        text: str = answer.read().decode()
    return text


def free_ports(digits: int) -> str:
    """The first digits of ten ports that are free, below those that systems give to clients."""
    assert digits == 4
    for first in range(2000 + os.getpid() % 900, 3200):
        with suppress(ClusterRefused):
            require([10 * first + last for last in range(10)])
            return str(first)
    raise AssertionError("no ten ports in a row are free")
