"""One look at a cluster, ready to be shown."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, TypeVar

from kelpie.doctor.broker_loss import broker_losses
from kelpie.doctor.case import Case
from kelpie.doctor.chapters import brief, chapters
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Finding
from kelpie.doctor.overview import overview
from kelpie.examination import Examined
from kelpie.model.time import Instant

T = TypeVar("T")


class Snapshot:
    """Made by the thread that looked; pages only read it."""

    def __init__(self, examined: Examined, at: Instant, took_ms: int) -> None:
        self.diagnosis: Diagnosis = examined.diagnosis
        self.saw_anything = examined.saw_anything
        self.at = at
        """When the look began."""
        self.took_ms = took_ms
        unheard_of = set(self.diagnosis.unheard_of)
        self._cases = {case.group: case for case in examined.cases if case.group not in unheard_of}
        self.groups = tuple(overview(self.cases(), self.diagnosis.findings))
        self.losses = broker_losses(self.diagnosis.cluster, self.cases())
        self.chapters = chapters(self.diagnosis)
        self.brief = brief(self.diagnosis)
        self._findings: defaultdict[str, list[Finding]] = defaultdict(list)
        for finding in self.diagnosis.findings:
            if finding.group is not None:
                self._findings[finding.group].append(finding)
        self._making = threading.Lock()
        self._kept: dict[str, Any] = {}

    def case(self, group: str) -> Case | None:
        """A copy: what is derived of it goes with the page."""
        found = self._cases.get(group)
        return None if found is None else copy(found)

    def cases(self) -> Iterable[Case]:
        """Copies, one after the other."""
        return map(copy, self._cases.values())

    def findings_of(self, group: str) -> list[Finding]:
        """Worst first."""
        return self._findings.get(group, [])

    def kept(self, name: str, make: Callable[["Snapshot"], T]) -> T:
        """What `make` makes of it: made once, when somebody first asks."""
        with self._making:
            if name not in self._kept:
                self._kept[name] = make(self)
            made: T = self._kept[name]
            return made
