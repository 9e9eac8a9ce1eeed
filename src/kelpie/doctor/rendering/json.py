"""A diagnosis as JSON. docs/schemas/doctor.json describes it; `VERSION` changes when readers must change.

Times are ISO 8601 in UTC with milliseconds. What is not known is null. Only ASCII is written, so that group
names of any kind survive any terminal and any file.
"""

import json
from collections.abc import Mapping
from typing import Any

from kelpie.cluster import ClusterView
from kelpie.doctor.diagnosis import Cost, Diagnosis, Waiting
from kelpie.doctor.finding import Evidence, Finding, Remedy
from kelpie.doctor.report import blast_radius, verdict
from kelpie.doctor.timeline import timeline_of
from kelpie.model.repeated import Repeated
from kelpie.model.time import Instant, iso_time
from kelpie.observations import Unasked

VERSION = 1


def render(diagnosis: Diagnosis) -> str:
    return json.dumps(as_data(diagnosis), indent=2)


def as_data(diagnosis: Diagnosis) -> dict[str, Any]:
    radius = blast_radius(diagnosis)
    timeline = timeline_of(diagnosis)
    worst = diagnosis.worst
    repeated: dict[int, Repeated] = {}
    return {
        "version": VERSION,
        "severity": worst.word if worst is not None else None,
        "summary": verdict(diagnosis),
        "at": time_of(diagnosis.cluster.now or None),
        "cluster": _cluster(diagnosis.cluster),
        "groups": list(diagnosis.groups),
        "unknown_groups": list(diagnosis.unheard_of),
        "unlisted": [{"group": group, "known_from": list(known)} for group, known in diagnosis.unlisted],
        "blast_radius": {
            "groups": list(radius.groups),
            "partitions": list(radius.partitions),
            "brokers": list(radius.brokers),
            "leaderless_offsets_partitions": list(radius.leaderless),
        },
        "findings": [finding_as_data(finding, diagnosis.waiting, repeated) for finding in diagnosis.findings],
        "incidents": [
            {
                "code": incident.code,
                "name": incident.name,
                "cause": incident.cause,
                "severity": incident.severity.word,
                "groups": list(incident.groups),
            }
            for incident in diagnosis.incidents
        ],
        "timeline": [
            {
                "at": time_of(entry.at),
                "text": entry.text,
                "source": entry.source,
                "groups": list(entry.groups),
            }
            for entry in timeline.entries
        ],
        "ill_before": [{"group": group, "codes": list(codes)} for group, codes in timeline.ill_before],
        "undetermined": [
            {
                "code": question.code,
                "name": question.name,
                "verdict": "undetermined",
                "missing": list(question.missing),
                "groups": list(question.groups),
            }
            for question in diagnosis.open
        ],
        "unasked": [_unasked(row) for row in diagnosis.unasked],
        "cost": _cost(diagnosis.cost),
    }


def _cost(cost: Cost | None) -> dict[str, Any] | None:
    if cost is None:
        return None
    return {"requests": cost.requests, "bytes_received": cost.bytes_received, "by_api": dict(cost.by_api)}


def _cluster(cluster: ClusterView) -> dict[str, Any]:
    return {
        "bootstrap": cluster.bootstrap or None,
        "offsets_partitions": cluster.offsets_partitions,
        "brokers": [
            {
                "node_id": broker.node_id,
                "address": broker.address or None,
                "alive": broker.alive,
                "reason": broker.reason or None,
            }
            for _, broker in sorted(cluster.brokers.items())
        ],
    }


def finding_as_data(
    finding: Finding, waiting: Mapping[str, Waiting], repeated: dict[int, Repeated] | None = None
) -> dict[str, Any]:
    """`repeated`: what was made for findings before of evidence and remedies, by id of these."""
    if repeated is None:
        repeated = {}
    records = waiting.get(finding.group) if finding.group is not None else None
    known = finding.acknowledged
    return {
        "id": finding.id,
        "caused_by": list(finding.caused_by),
        "code": finding.code,
        "name": finding.name,
        "verdict": "present",
        "severity": finding.severity.word,
        "group": finding.group,
        "summary": finding.summary,
        "why": finding.why,
        "evidence": [repeated.get(id(piece)) or _evidence(piece, repeated) for piece in finding.evidence],
        "remedies": [repeated.get(id(remedy)) or _remedy(remedy, repeated) for remedy in finding.remedies],
        "cause": finding.cause,
        "brokers": list(finding.brokers),
        "partitions": list(finding.partitions),
        "members": list(finding.members),
        "since": time_of(finding.since),
        "until": time_of(finding.until),
        "check": finding.check or None,
        "waiting": None if records is None else {"records": records.records, "since": time_of(records.since)},
        "acknowledged": None
        if known is None
        else {"until": time_of(known.until), "by": known.by, "why": known.why},
    }


def _evidence(piece: Evidence, repeated: dict[int, Repeated]) -> Repeated:
    made = Repeated(text=piece.text, source=piece.source or None, at=time_of(piece.at))
    repeated[id(piece)] = made
    return made


def _remedy(remedy: Remedy, repeated: dict[int, Repeated]) -> Repeated:
    made = repeated[id(remedy)] = Repeated(text=remedy.text, command=remedy.command or None)
    return made


def _unasked(row: Unasked) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "name": row.name,
        "reason": row.reason,
        "source": row.source or None,
        "at": time_of(row.at),
    }


def time_of(at: Instant | None) -> str | None:
    return None if at is None else iso_time(at)
