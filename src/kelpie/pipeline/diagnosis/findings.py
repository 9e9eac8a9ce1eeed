"""Findings and open questions as rows of tables, and back."""

from collections.abc import Mapping
from typing import Any

from kelpie.doctor.diagnosis import Open
from kelpie.doctor.finding import Evidence, Finding, Remedy, Severity
from kelpie.pipeline.tables.moments import instant, moment


def finding_row(finding: Finding, cluster: str) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "group": finding.group,
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.word,
        "summary": finding.summary,
        "why": finding.why,
        "cause": finding.cause,
        "since": moment(finding.since),
        "until": moment(finding.until),
        "evidence": [
            {"text": quote.text, "source": quote.source, "at": moment(quote.at)} for quote in finding.evidence
        ],
        "remedies": [{"text": remedy.text, "command": remedy.command} for remedy in finding.remedies],
        "brokers": list(finding.brokers),
        "partitions": list(finding.partitions),
        "members": list(finding.members),
    }


def finding_of(row: Mapping[str, Any]) -> Finding:
    return Finding(
        row["code"],
        row["name"],
        Severity[row["severity"].upper()],
        row["group"],
        row["summary"],
        row["why"] or "",
        tuple(
            Evidence(quote["text"], quote["source"] or "", instant(quote["at"])) for quote in row["evidence"]
        ),
        tuple(Remedy(remedy["text"], remedy["command"] or "") for remedy in row["remedies"]),
        row["cause"] or "",
        tuple(row["brokers"] or ()),
        tuple(row["partitions"] or ()),
        tuple(row["members"] or ()),
        instant(row["since"]),
        instant(row["until"]),
    )


def open_row(question: Open, cluster: str) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "group": question.group,
        "code": question.code,
        "name": question.name,
        "missing": list(question.missing),
    }


def open_of(row: Mapping[str, Any]) -> Open:
    return Open(row["code"], row["name"], row["group"], tuple(row["missing"]))
