"""What the driver sends to tasks that read logs, and what they return."""

from dataclasses import dataclass
from typing import NamedTuple

from kelpie.evidence.logs.hints import LogLayout
from kelpie.pipeline.sources.logs.parts import Known, Part


class Task(NamedTuple):
    """A range of a file; all of it, if it must be read line by line."""

    name: str
    path: str
    encoding: str
    layout: LogLayout | None = None
    piece: int = 0
    pieces: int = 1
    begins: int = 0
    ends: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class LogTaskResult:
    """What a task read."""

    task: Task
    part: Part | None = None
    """None: the file must be read as a whole, or cannot be read."""
    rows: str = ""
    """The staged file with its rows."""
    count: int = 0
    reason: str = ""
    """Why the file cannot be used."""
    last_entry: int | None = None
    """Where the last entry of the file begins, if this is that entry and nothing else."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that were read, and what they still lack."""

    source: str
    log: str
    rows: str
    count: int
    known: Known
    skip: int = 0
    """The number of first rows that the table has already."""
