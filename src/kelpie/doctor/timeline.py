"""An incident in order of time: losses, the groups hit, and the groups with earlier findings."""

from dataclasses import dataclass

from kelpie.doctor.chapters import Part
from kelpie.doctor.diagnosis import Diagnosis, groups_of
from kelpie.doctor.finding import Finding, Severity
from kelpie.model.time import Instant


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    at: Instant
    text: str
    source: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    entries: tuple[TimelineEntry, ...]
    """By time."""
    began: Instant | None
    """When the first broker was lost, or the first critical finding began."""
    ill_before: tuple[tuple[str, tuple[str, ...]], ...]
    """Groups that had something before it began, each with the codes."""


def timeline_of(diagnosis: Diagnosis) -> Timeline:
    entries = _losses(diagnosis)
    began = min((entry.at for entry in entries), default=None)
    entries += [entry for part in _parts(diagnosis) for entry in _entries(part)]
    dated = [(finding.since, finding) for finding in diagnosis.findings if finding.since is not None]
    if began is None:
        critical = [since for since, finding in dated if finding.severity is Severity.CRITICAL]
        began = min(critical, default=None)
    before: dict[str, set[str]] = {}
    for since, finding in dated:
        if finding.group is not None and began is not None and since < began:
            before.setdefault(finding.group, set()).add(finding.code)
    return Timeline(
        tuple(sorted(entries, key=lambda entry: entry.at)),
        began,
        tuple((group, tuple(sorted(codes))) for group, codes in sorted(before.items())),
    )


def _parts(diagnosis: Diagnosis) -> list[Part]:
    """The findings by code, those that are over apart."""
    by_code: dict[tuple[str, str, bool], list[Finding]] = {}
    for finding in diagnosis.findings:
        by_code.setdefault((finding.code, finding.name, finding.until is not None), []).append(finding)
    return [Part(code, name, tuple(findings)) for (code, name, _), findings in by_code.items()]


def _entries(part: Part) -> list[TimelineEntry]:
    """When its findings began, and ended; those that began at the same time are one entry."""
    title = f"{part.code} {part.name}"
    beginnings: dict[Instant, list[Finding]] = {}
    for finding in part.findings:
        if finding.since is not None:
            beginnings.setdefault(finding.since, []).append(finding)
    entries = []
    for at, findings in beginnings.items():
        groups = groups_of(findings)
        source = findings[0].evidence[0].source if findings[0].evidence else ""
        entries.append(TimelineEntry(at, title, source, groups))
        ends = [finding.until for finding in findings if finding.until is not None]
        if len(ends) == len(findings):
            entries.append(TimelineEntry(max(ends), f"{title}: over", "", groups))
    return entries


def _losses(diagnosis: Diagnosis) -> list[TimelineEntry]:
    entries = []
    for node, outages in diagnosis.cluster.outages.items():
        name = diagnosis.cluster.broker_name(node)
        for outage in outages:
            went = f"{name} shut down" if outage.orderly else f"{name} lost"
            if outage.since is not None:
                entries.append(TimelineEntry(outage.since, went, outage.source))
            if outage.until is not None:
                entries.append(TimelineEntry(outage.until, f"{name} back", outage.source))
    return entries
