"""A repair as data: what would be done, what each step changes, and what would undo it.

Nothing here does anything. `applying` carries a repair out, `rendering` prints it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace

from kelpie.cluster import commands
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.names import TopicPartition


class CannotRepair(KelpieError):
    """A repair cannot be planned. The text says why, and what to do instead."""


@dataclass(frozen=True, slots=True)
class ManualStep:
    """Something that a person does: in words, and as lines to paste where there are some."""

    text: str
    lines: tuple[str, ...] = ()

    def with_properties(self, file: str) -> "ManualStep":
        """The same; commands that reach a cluster read these client properties too."""
        return replace(self, lines=tuple(commands.with_properties(line, file) for line in self.lines))


_OF_BASIS = frozenset(
    ("group", "new_name", "offsets", "reassignment", "before", "changes", "unclean", "zookeeper_group")
)
"""Details that say what is changed."""
NOTHING_CHANGES = ManualStep("not needed; it changes nothing in the cluster.")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done, in the imperative: "Commit 12 offsets for group billing-2"."""

    does: str
    changes: str
    """What is different afterwards."""
    undo: ManualStep
    """How to have it back as it was, or that nothing does that."""


@dataclass(frozen=True, slots=True)
class PlanTable:
    """Rows that a person wants to see. A column of numbers is aligned to the right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    """What letters in the rows mean."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text that other tools take as it is."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class SkippedPartition:
    """A partition that stays as it is, and why."""

    partition: TopicPartition
    reason: str
    is_well: bool = False
    """Nothing has to be done for it."""

    def __str__(self) -> str:
        return f"{self.partition}: {self.reason}"


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
    """Facts that led to this plan."""
    tables: tuple[PlanTable, ...] = ()
    documents: tuple[Document, ...] = ()
    warnings: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = ()
    """Why it cannot be applied now, and what would help."""
    afterwards: tuple[ManualStep, ...] = ()
    """What is left for a person to do."""
    instead: tuple[ManualStep, ...] = ()
    """What a person has to do by hand, where the cluster is too old to do it on request."""
    details: Mapping[str, object] = field(default_factory=dict)
    """The plan for programs: only numbers, texts, lists and mappings."""
    moving: tuple[str, ...] = ()
    """Fields of offsets that follow the ends of logs, which move while the plan is looked at."""

    @property
    def applicable(self) -> bool:
        return bool(self.steps) and not self.obstacles

    @property
    def basis(self) -> tuple[str, ...]:
        """What would be changed, and what is there now; without what differs each time one looks."""
        lines = [self.title]
        for step in self.steps:
            if step.undo != NOTHING_CHANGES:
                lines += [step.does, step.changes]
        for name in _OF_BASIS & self.details.keys():
            rows = self.details[name]
            lines += [self._basis_line(name, row) for row in (rows if isinstance(rows, list) else [rows])]
        return tuple(sorted(lines))

    def _basis_line(self, name: str, row: object) -> str:
        if isinstance(row, Mapping) and "topic" in row:
            parts = []
            if "before" in row:
                parts.append("has no offset" if row["before"] is None else f"is at {row['before']}")
            if "offset" in row and "offset" not in self.moving:
                parts.append("goes to no offset" if row["offset"] is None else f"goes to {row['offset']}")
            return f"{row['topic']}-{row['partition']} {' and '.join(parts)}"
        return f"{name} {json.dumps(row, sort_keys=True, default=str)}"

    @property
    def id(self) -> str:
        """Two plans with one id change the same, and found the same there."""
        text = json.dumps([self.repair, *self.basis])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]

    def with_properties(self, file: str) -> "Plan":
        """The same plan; its commands read these client properties too."""
        return replace(
            self,
            steps=tuple(replace(step, undo=step.undo.with_properties(file)) for step in self.steps),
            afterwards=tuple(step.with_properties(file) for step in self.afterwards),
            instead=tuple(step.with_properties(file) for step in self.instead),
        )
