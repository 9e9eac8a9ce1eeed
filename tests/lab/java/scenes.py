r"""Scenes: console tools and what they print, in one text file each.

    # a comment; the first one says what the scene is for
    @ plan.json {"version": 1}      a file, whose path the arguments below get for @plan.json
    $ kafka-topics --list | grep hay | sub "hay-\d+" hay-N | sort
    < a line of standard input
    what is printed; `! ` before standard error, `= 1` for an exit status other than 0

Ports, ids, times and the width of columns differ from run to run, and are made equal. What a scene says was
printed by Kafka 4.3.1; KELPIE_RECORD=1 writes it anew when the tests run against real Kafka.
"""

import re
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.java.jvm import Said

FOLDER = Path(__file__).parent / "scenes"
Run = Callable[..., Said]

_SAME = (
    (re.compile(r"127\.0\.0\.1:\d+( \(\d\))?"), "BROKER"),
    (re.compile(r"(?<=TopicId: )\S+"), "ID"),
    (re.compile(r'(?<=")/[^"]*'), "/FOLDER"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\b1[6-9]\d{11}\b"), "TIME"),
)


# Where in Java an error came from, blank lines, and an advertisement.
_NOISE = re.compile(r"^(! )?(at |Caused by: |\.\.\. \d+ more|The consumer rebalance protocol|$)|^!$")

# News of a change travels from broker to broker: who only looks may have to look again.
_ONLY_LOOKS = re.compile(r" (--)?(list|describe|describe-producers|verify)\b|^kafka-get-offsets ")
_PATIENCE_S = 15.0
_STILL_S = 2.0


@dataclass(slots=True)
class Step:
    command: str
    stdin: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)

    def play(self, run: Run, files: Path, *, recording: bool) -> list[str]:
        lines = self._run(run, files)
        if not _ONLY_LOOKS.search(self.command):
            return lines
        since = time.monotonic()
        while time.monotonic() - since < (_STILL_S if recording else _PATIENCE_S):
            if lines == self.output and not recording:
                break
            before, lines = lines, self._run(run, files)
            if lines != before and recording:
                since = time.monotonic()
        return lines

    def _run(self, run: Run, files: Path) -> list[str]:
        tool, *pipes = self.command.split(" | ")
        name, *arguments = (re.sub(r"^@", f"{files}/", word) for word in shlex.split(tool))
        said = run(name, *arguments, stdin="".join(f"{line}\n" for line in self.stdin))
        lines = said.stdout.splitlines() + [f"! {line}" for line in said.stderr.splitlines()]
        lines = [same for line in lines if (same := _same(line.replace(str(files), "FILES")))]
        for pipe in pipes:
            lines = _piped(lines, *shlex.split(pipe))
        return lines + ([f"= {said.status}"] if said.status else [])


def play(scene: Path, run: Run, files: Path, *, recording: bool = False) -> str:
    """The text of the scene with what is printed now."""
    told: list[str] = []
    for part in _parts(scene.read_text().splitlines()):
        if isinstance(part, Step):
            told += [
                f"$ {part.command}",
                *(f"< {line}" for line in part.stdin),
                *part.play(run, files, recording=recording),
            ]
            continue
        told.append(part)
        if part.startswith("@ "):
            _, name, content = part.split(" ", 2)
            (files / name).write_text(content)
    return "\n".join(told) + "\n"


def _parts(lines: list[str]) -> Iterator[str | Step]:
    """Steps, and the lines between them that are no output."""
    step: Step | None = None
    for line in lines:
        mark, _, rest = line.partition(" ")
        if mark == "$":
            if step:
                yield step
            step = Step(rest)
        elif mark == "<" and step:
            step.stdin.append(rest)
        elif mark in ("#", "@") or not line:
            if step:
                yield step
                step = None
            yield line
        elif step:
            step.output.append(line)
    if step:
        yield step


def _same(line: str) -> str:
    line = " ".join(line.split())
    for pattern, instead in _SAME:
        line = pattern.sub(instead, line)
    line = re.sub(r"(?<=Isr: )[\d,]+", lambda isr: ",".join(sorted(isr[0].split(","))), line)
    return "" if _NOISE.search(line) else line


def _piped(lines: list[str], program: str, *arguments: str) -> list[str]:
    if program == "sort":
        return sorted(lines)
    if program == "sub":
        pattern, replacement = arguments
        return [re.sub(pattern, replacement, line) for line in lines]
    assert program == "grep", program
    *options, pattern = arguments
    found = [(line, re.search(pattern, line)) for line in lines]
    if "-o" in options:
        return [match[0] for _, match in found if match]
    return [line for line, match in found if bool(match) != ("-v" in options)]
