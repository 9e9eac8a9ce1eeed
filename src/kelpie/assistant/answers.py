"""What tools return. Every text and every list has a limit; what was left out is counted.

Texts that come from a cluster or a file are data. Whatever could drive a terminal in them is written out.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from kelpie.api.examining import groups_of
from kelpie.doctor.broker_loss import BrokerLoss
from kelpie.doctor.finding import Finding
from kelpie.doctor.group_history import GroupHistory, Rebalance, Value
from kelpie.doctor.overview import GroupOverview
from kelpie.doctor.report import verdict
from kelpie.documents.declaring import TypedDict, document
from kelpie.examination import Examined
from kelpie.model.quoting import harmless
from kelpie.model.time import Instant, iso_time

MOST_ROWS = 20
MOST_EVIDENCE = 5
MOST_NAMES = 50
MOST_SIGNS = 600
"""Of one text."""
T = TypeVar("T")


@document
class SourcesAnswer(TypedDict):
    clusters: list[str]
    evidence: list[str]
    tables: list[str]


@document
class EvidenceRow(TypedDict):
    """A raw value that was seen: what, where, when."""

    text: str
    source: str | None
    at: str | None


@document
class FindingRow(TypedDict):
    id: str
    code: str
    name: str
    severity: str
    group: str | None
    """null: it concerns the cluster."""
    summary: str
    why: str
    since: str | None
    evidence: list[EvidenceRow]
    evidence_left_out: int
    remedies: list[str]
    """For a person to decide; this server does none of them."""


@document
class ExamineAnswer(TypedDict):
    verdict: str
    saw_anything: bool
    """false: nothing answered, so that nothing is known."""
    at: str | None
    groups: int
    findings: list[FindingRow]
    findings_left_out: int
    not_asked: list[str]
    not_asked_left_out: int


@document
class GroupAnswerRow(TypedDict):
    group: str
    state: str | None
    members: int | None
    lag: int | None
    lag_is_complete: bool
    coordinator: int | None
    last_commit: str | None
    worst: str | None


@document
class GroupsAnswer(TypedDict):
    groups: list[GroupAnswerRow]
    groups_left_out: int
    saw_anything: bool


@document
class PlaceRow(TypedDict):
    group: str
    partition: int
    """Of __consumer_offsets."""
    leader: str | None
    in_sync: list[int] | None
    healthy: str


@document
class WhereAnswer(TypedDict):
    places: list[PlaceRow]
    places_left_out: int


@document
class LossRow(TypedDict):
    broker: int
    groups_that_stop: list[str]
    groups_that_stop_in_all: int
    groups_that_move_in_all: int
    partitions_without_leader: list[str]
    partitions_without_leader_in_all: int


@document
class LossAnswer(TypedDict):
    brokers: list[LossRow]
    brokers_left_out: int
    at: str | None


@document
class RuleAnswer(TypedDict):
    code: str
    name: str
    text: str


@document
class HistoryEvent(TypedDict):
    at: str
    text: str


@document
class HistoryValue(TypedDict):
    at: str
    value: float


@document
class HistoryAnswer(TypedDict):
    group: str
    begins: str | None
    ends: str | None
    lag: list[HistoryValue]
    """Records left to read; the greatest of each stretch of time."""
    rebalances: list[HistoryEvent]
    """The newest."""
    rebalances_left_out: int
    departures: list[HistoryEvent]
    departures_left_out: int


def plain(text: str) -> str:
    """Harmless, and not longer than the limit."""
    shown = harmless(text)
    return shown if len(shown) <= MOST_SIGNS else f"{shown[:MOST_SIGNS]}… ({len(shown)} signs)"


def examine_answer(examined: Examined, findings: Sequence[Finding]) -> ExamineAnswer:
    diagnosis = examined.diagnosis
    unasked = diagnosis.unasked
    return {
        "verdict": plain(verdict(diagnosis)),
        "saw_anything": examined.saw_anything,
        "at": _time(diagnosis.cluster.now or None),
        "groups": len(diagnosis.groups),
        "findings": [_finding(finding) for finding in findings[:MOST_ROWS]],
        "findings_left_out": _left_out(findings, MOST_ROWS),
        "not_asked": [plain(f"{row.kind} {row.name}: {row.reason}") for row in unasked[:MOST_ROWS]],
        "not_asked_left_out": _left_out(unasked, MOST_ROWS),
    }


def groups_answer(examined: Examined, sort: str) -> GroupsAnswer:
    seen = groups_of(examined, sort)
    return {
        "groups": [_group(row) for row in seen.rows[:MOST_NAMES]],
        "groups_left_out": _left_out(seen.rows, MOST_NAMES),
        "saw_anything": seen.saw_anything,
    }


def loss_answer(losses: Sequence[BrokerLoss], at: Instant | None) -> LossAnswer:
    return {
        "brokers": [
            {
                "broker": loss.node_id,
                "groups_that_stop": [plain(name) for name in loss.stopped[:MOST_NAMES]],
                "groups_that_stop_in_all": len(loss.stopped),
                "groups_that_move_in_all": len(loss.moved),
                "partitions_without_leader": [plain(str(name)) for name in loss.leaderless[:MOST_NAMES]],
                "partitions_without_leader_in_all": len(loss.leaderless),
            }
            for loss in losses[:MOST_ROWS]
        ],
        "brokers_left_out": _left_out(losses, MOST_ROWS),
        "at": _time(at),
    }


def history_answer(group: str, history: GroupHistory) -> HistoryAnswer:
    rebalances = [(row.at, _rebalance(row)) for row in history.rebalances]
    departures = [
        (row.at, f"{row.member} {row.why} {row.reason} ({row.source or 'no source'})")
        for row in history.departures
    ]
    return {
        "group": plain(group),
        "begins": _time(history.begin),
        "ends": _time(history.end),
        "lag": [{"at": iso_time(at), "value": float(value)} for at, value in _thinned(history.lag)],
        "rebalances": _events(rebalances),
        "rebalances_left_out": _left_out(rebalances, MOST_ROWS),
        "departures": _events(departures),
        "departures_left_out": _left_out(departures, MOST_ROWS),
    }


def _rebalance(row: Rebalance) -> str:
    """Only what is known of it."""
    generation = f"generation {row.generation}" if row.generation is not None else ""
    members = f"{row.members} members" if row.members is not None else ""
    return ", ".join(filter(None, [generation, members, f"{row.cause} {row.reason}".strip()]))


def _finding(finding: Finding) -> FindingRow:
    return {
        "id": finding.id,
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.word,
        "group": plain(finding.group) if finding.group is not None else None,
        "summary": plain(finding.summary),
        "why": plain(finding.why),
        "since": _time(finding.since),
        "evidence": [
            {"text": plain(piece.text), "source": plain(piece.source) or None, "at": _time(piece.at)}
            for piece in finding.evidence[:MOST_EVIDENCE]
        ],
        "evidence_left_out": _left_out(finding.evidence, MOST_EVIDENCE),
        "remedies": [
            plain(f"{remedy.text} {remedy.command}".strip()) for remedy in finding.remedies[:MOST_EVIDENCE]
        ],
    }


def _group(row: GroupOverview) -> GroupAnswerRow:
    worst = row.worst
    return {
        "group": plain(row.group),
        "state": row.state or None,
        "members": row.members,
        "lag": row.lag,
        "lag_is_complete": row.lag_is_whole,
        "coordinator": row.coordinator,
        "last_commit": _time(row.last_commit),
        "worst": plain(f"{worst.severity.word} {worst.code}: {worst.summary}") if worst is not None else None,
    }


def _events(rows: Sequence[tuple[Instant, str]]) -> list[HistoryEvent]:
    return [{"at": iso_time(at), "text": plain(text)} for at, text in rows[-MOST_ROWS:]]


def _thinned(values: Sequence[Value]) -> Iterable[Value]:
    """The greatest of each stretch, so that a peak stays."""
    step = max(1, -(-len(values) // MOST_NAMES))
    for at in range(0, len(values), step):
        yield max(values[at : at + step], key=lambda value: value[1])


def _left_out(rows: Sequence[object], most: int) -> int:
    return max(0, len(rows) - most)


def _time(at: Instant | None) -> str | None:
    return None if at is None else iso_time(at)
