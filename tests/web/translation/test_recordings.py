"""Recordings of real incidents, in Chinese: nothing is left in English but what logs and brokers said."""

import pytest

from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import Diagnosis, diagnose_all
from kelpie.doctor.journey import journey
from kelpie.doctor.report import missing_by_want, others, verdict
from kelpie.doctor.timeline import timeline_of
from kelpie.evidence import read_evidence
from tests.doctor.matrix.recording import file_of, recorded
from tests.evidence import unpacked
from tests.web.translation.leftover import english_in, english_left

RECORDINGS = (
    "kafka-0.8.2.2-rebalance-failure",
    "kafka-0.9.0.1-coordinator-outage",
    "kafka-4.3.1-coordinator-outage",
    "kop-3.2-scrapes",
)
SITUATIONS = ("broker-killed", "topic-deleted", "without-rights", "clock-ahead")


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_is_told_in_chinese(name: str) -> None:
    rows = read_evidence([unpacked(name)])
    cluster, cases = build(rows)
    diagnosis = diagnose_all(cluster, cases)
    assert _left(diagnosis, [event.text for event in rows.events]) == []
    steps = [step.text for case in cases for step in journey(case, ())]
    assert [part for text in steps for part in english_in(text)] == []


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_situation_of_production_is_told_in_chinese(name: str) -> None:
    """The last moment of each, as it was recorded on 4.3.1."""
    *_, last = recorded(file_of(name, "4.3.1"))
    assert _left(diagnose_all(*build(last.rows)), ()) == []


def _left(diagnosis: Diagnosis, lines: list[str] | tuple[str, ...]) -> list[str]:
    """Lines of logs are quoted, and so are lines of metrics."""
    left = [part for finding in diagnosis.findings for part in english_left(finding)]
    texts = [verdict(diagnosis), others(diagnosis), *(want.missing for want in missing_by_want(diagnosis))]
    texts += [entry.text for entry in timeline_of(diagnosis).entries]
    texts += [piece.text for finding in diagnosis.findings for piece in finding.evidence]
    quoted = [*lines, *(text for text in texts if text.startswith("kop_server_"))]
    return left + [part for text in texts for part in english_in(text, quoted)]
