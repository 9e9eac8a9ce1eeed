"""Incidents over time: findings with the same code and cause, from when to when, and brokers that were away.

One look tells of findings that are there and of those that logs show to be over. `IncidentLog` puts the
looks of a live cluster together: an incident that a later look no longer finds has ended by then.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.diagnosis import Incident as FoundIncident
from kelpie.doctor.finding import Severity
from kelpie.model.time import Instant
from kelpie.web.snapshot import Snapshot

AWAY = "broker-away"
"""Instead of the name of a rule: a broker that was away, whether or not a rule finds fault with it."""
OUTAGE = "coordinator-outage"
"""A partition of the offsets topic had no leader, as tables tell."""
_MOST = 1_000
_MOST_GROUPS = 100


@dataclass(frozen=True, slots=True)
class Incident:
    code: str
    """Of a rule. Empty: `name` is one of the words above."""
    name: str
    cause: str
    severity: Severity
    summary: str
    groups: tuple[str, ...]
    """Not more than a hundred of them."""
    group_count: int
    began: Instant | None
    ended: Instant | None
    """None: it goes on."""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.code, self.name, self.cause


def incidents_in(look: Snapshot) -> list[Incident]:
    """What one look tells; those of rules first, worst first. A cause is as bad as what follows from it."""
    severities = {
        finding.id: chapter.severity for chapter in look.chapters for finding in chapter.cause.findings
    }
    found = [_of_rule(each, severities) for each in look.diagnosis.incidents]
    return [*found, *_outages(look.diagnosis)]


def _of_rule(found: FoundIncident, severities: Mapping[str, Severity]) -> Incident:
    begun = [finding.since for finding in found.findings if finding.since is not None]
    ends = [finding.until for finding in found.findings if finding.until is not None]
    return Incident(
        found.code,
        found.name,
        found.cause,
        max(found.severity, *(severities.get(each.id, found.severity) for each in found.findings)),
        found.findings[0].summary,
        found.groups[:_MOST_GROUPS],
        len(found.groups),
        min(begun, default=None),
        max(ends) if len(ends) == len(found.findings) else None,
    )


def _outages(diagnosis: Diagnosis) -> Iterator[Incident]:
    for node, outages in diagnosis.cluster.outages.items():
        name = diagnosis.cluster.broker_name(node)
        for outage in outages:
            severity = Severity.WARNING if outage.until is None else Severity.NOTICE
            cause, began = str(node), outage.at_latest
            yield Incident("", AWAY, cause, severity, outage.text or name, (), 0, began, outage.until)


class IncidentLog:
    """Of a live cluster, since Kelpie began to look."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._under_way: dict[tuple[str, str, str], Incident] = {}
        self._over: dict[tuple[str, str, str, Instant | None], Incident] = {}
        self._lock = threading.Lock()

    def add(self, look: Snapshot, *others: Incident) -> None:
        """A look that saw nothing ends nothing. `others`: what is known besides."""
        found = [*incidents_in(look), *others]
        with self._lock:
            self._end({each.key for each in found if each.ended is None}, look)
            for incident in found:
                if incident.ended is None:
                    known = self._under_way.get(incident.key)
                    self._under_way[incident.key] = _longer(incident, known, look.now)
                else:
                    self._over[*incident.key, incident.began] = incident
            while len(self._over) > self._most:
                self._over.pop(min(self._over, key=lambda key: self._over[key].ended or 0))

    def _end(self, still: set[tuple[str, str, str]], look: Snapshot) -> None:
        if not look.saw_anything:
            return
        for key in self._under_way.keys() - still:
            ended = replace(self._under_way.pop(key), ended=look.now)
            self._over[*key, ended.began] = ended

    def all(self) -> list[Incident]:
        with self._lock:
            return [*self._under_way.values(), *self._over.values()]


def _longer(incident: Incident, known: Incident | None, now: Instant) -> Incident:
    """It began when it was first seen, or earlier, if a finding says so."""
    began = min(now, incident.began if incident.began is not None else now)  # Clocks may differ.
    if known is None:
        return replace(incident, began=began)
    if known.began is not None:
        began = min(began, known.began)
    return replace(incident, began=began, severity=max(incident.severity, known.severity))


def by_time(incidents: Iterable[Incident]) -> list[Incident]:
    """Those that go on first, then the latest first."""
    return sorted(
        incidents,
        key=lambda each: (
            each.ended is not None,
            -each.severity if each.ended is None else 0,
            -(each.began or 0),
        ),
    )
