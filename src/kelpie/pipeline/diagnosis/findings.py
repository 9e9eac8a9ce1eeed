"""Findings and open questions as rows of tables, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kelpie.doctor.finding import Evidence, Finding, Remedy, Severity
from kelpie.doctor.open_questions import Open
from kelpie.pipeline.tables.moments import instant, moment


def finding_row(finding: Finding, cluster: str) -> dict[str, Any]:
    return {
        **asdict(finding),
        "cluster": cluster,
        "severity": finding.severity.word,
        "since": moment(finding.since),
        "until": moment(finding.until),
        "evidence": [{**asdict(quote), "at": moment(quote.at)} for quote in finding.evidence],
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
        row.get("check") or "",
    )


def open_row(question: Open, cluster: str) -> dict[str, Any]:
    return {**question._asdict(), "cluster": cluster}


def open_of(row: Mapping[str, Any]) -> Open:
    return Open(row["code"], row["name"], row["group"], tuple(row["missing"]))
