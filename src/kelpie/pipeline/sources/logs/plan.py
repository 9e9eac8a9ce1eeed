"""What the driver tells tasks that read logs, and what they tell it."""

from dataclasses import dataclass
from typing import NamedTuple

from kelpie.evidence.logs.hints import Layout
from kelpie.pipeline.sources.logs.parts import Known, Part


class Task(NamedTuple):
    """A range of a file; all of it, if it must be read line by line."""

    name: str
    path: str
    encoding: str
    layout: Layout | None = None
    piece: int = 0
    pieces: int = 1
    begins: int = 0
    ends: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a task read."""

    task: Task
    part: Part | None = None
    """None: it must be read as a whole, or cannot be read."""
    rows: str = ""
    """The file that they are in."""
    count: int = 0
    reason: str = ""
    """Why it is of no use."""
    last_entry: int | None = None
    """Where the last entry of the file begins, if this is that entry and nothing else."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that were read, and what they lack."""

    source: str
    log: str
    rows: str
    count: int
    known: Known
    skip: int = 0
    """So many of the first rows are in the table already."""
