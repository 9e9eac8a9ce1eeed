"""What a run did, in numbers that grow while it runs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Announce = Callable[[str], None]
"""Called with the name of what begins now."""


@dataclass(slots=True)
class Summary:
    """What a run did."""

    cluster: str = ""
    files: int = 0
    """All files below the paths."""
    new_files: int = 0
    bytes: int = 0
    """Of the new files."""
    by_kind: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    """Rows that this run added, by bronze table."""
    tables: dict[str, int] = field(default_factory=dict)
    """Rows by table, now."""
    findings: dict[str, int] = field(default_factory=dict)
    """Findings by severity."""
    unusable: list[tuple[str, str]] = field(default_factory=list)
    """Files that could not be used, each with the reason."""
    notes: list[str] = field(default_factory=list)
    """What else a person should know of this run."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By stage."""

    @contextmanager
    def stage(self, name: str, announce: Announce, what: str = "") -> Iterator[None]:
        """Announces `what` (the name of the stage if empty) and adds the time of this block to the stage."""
        announce(what or name)
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began
