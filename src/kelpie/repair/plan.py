"""A repair as data: what would be done, what each step changes, and what would undo it.

Nothing here does anything. `applying` carries a repair out, `rendering` prints it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field


class CannotRepair(Exception):
    """What was asked cannot be planned: its text says why, and what to do instead."""


@dataclass(frozen=True, slots=True)
class Way:
    """Something that a person can do: in words, and as lines to paste where there are some."""

    text: str
    lines: tuple[str, ...] = ()


NOTHING_CHANGES = Way("not needed; it changes nothing in the cluster.")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done, in the imperative: "Commit 12 offsets for group billing-2"."""

    does: str
    changes: str
    """What is different afterwards."""
    undo: Way
    """How to have it back as it was, or a plain word that nothing does that."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that a person wants to see; columns that hold nothing but numbers are set as such."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    """What signs in the rows mean."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text that other tools take, as it stands."""

    title: str
    text: str


@dataclass(frozen=True)
class Plan:
    """What a repair would do. Without steps there is nothing to do; with obstacles it must not be done."""

    repair: str
    """The command: rehome, reset …"""
    title: str
    """One sentence with names: "Move group billing to billing-2"."""
    steps: tuple[Step, ...] = ()
    _: KW_ONLY
    seen: tuple[str, ...] = ()
    """What was found that led here."""
    tables: tuple[Table, ...] = ()
    documents: tuple[Document, ...] = ()
    warnings: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = ()
    """Why it cannot be applied as things are, and what would help."""
    afterwards: tuple[Way, ...] = ()
    """What is left for a person to do."""
    instead: tuple[Way, ...] = ()
    """What a person has to do by hand, where the cluster is too old to be asked for it."""
    details: Mapping[str, object] = field(default_factory=dict)
    """The same for programs: only numbers, texts, lists and mappings."""

    @property
    def applicable(self) -> bool:
        return bool(self.steps) and not self.obstacles

    def as_data(self) -> dict[str, object]:
        """What --json prints."""
        return {
            "repair": self.repair,
            "title": self.title,
            "applicable": self.applicable,
            "steps": [{"does": it.does, "changes": it.changes, "undo": _way(it.undo)} for it in self.steps],
            "seen": list(self.seen),
            "warnings": list(self.warnings),
            "obstacles": list(self.obstacles),
            "afterwards": _ways(self.afterwards),
            "instead": _ways(self.instead),
            "details": dict(self.details),
        }


def _way(way: Way) -> dict[str, object]:
    return {"text": way.text, "lines": list(way.lines)}


def _ways(ways: Sequence[Way]) -> list[dict[str, object]]:
    return [_way(way) for way in ways]
