"""Which findings explain which others: one table, and the function that links findings by it.

A row of `CAUSES` says: a finding of the code on the left explains findings of the codes on the right, if both
concern the same group, partition, topic or broker. The one that explains must not have begun long after the
other, nor have ended long before it. Where a time is not known, it is no obstacle.

`linked` gives every finding its id and the ids of those that explain it. It works on findings alone, so the
live doctor and findings read from tables get the same links.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from kelpie.doctor.finding import Finding
from kelpie.doctor.rules import rules

CLOSE_MS = 5 * 60_000
"""A cause and its effect begin and end within this time of each other: sessions, retries, surveys."""


class Same(Enum):
    """What two findings have in common."""

    GROUP = auto()
    PARTITION = auto()
    """One of the partitions of both; and the same group, if both concern a group."""
    TOPIC = auto()
    """One of the topics of their partitions; and the same group, if both concern a group."""
    BROKER = auto()
    CLUSTER = auto()
    """Nothing else: the cause concerns all groups."""

    __hash__ = object.__hash__  # That of Enum is a function of Python; here are thousands of findings.


@dataclass(frozen=True, slots=True)
class Explanation:
    """A finding of `cause` explains findings of `effects`."""

    cause: str
    effects: tuple[str, ...]
    same: Same
    whenever: bool = False
    """While the cause is there, the effect cannot end: it does not matter which of the two began first."""


_NOT_READING = ("KLP309", "KLP310", "KLP312", "KLP313")
"""The group does not get on: stalled, stopped, never commits, will lose records to retention."""
_REBALANCING = ("KLP201", "KLP202")

CAUSES = (
    # Dead broker, offsets partition without a leader, group without a coordinator.
    Explanation("KLP100", ("KLP101", "KLP104", "KLP311"), Same.BROKER, whenever=True),
    Explanation("KLP100", ("KLP106",), Same.PARTITION, whenever=True),
    Explanation("KLP104", ("KLP101", "KLP107", *_REBALANCING, *_NOT_READING), Same.CLUSTER),
    Explanation("KLP101", (*_REBALANCING, "KLP204", *_NOT_READING), Same.GROUP, whenever=True),
    Explanation("KLP102", (*_REBALANCING, "KLP204", *_NOT_READING), Same.GROUP),
    Explanation("KLP103", (*_REBALANCING, "KLP204", *_NOT_READING), Same.GROUP),
    Explanation("KLP105", (*_REBALANCING, "KLP204", *_NOT_READING), Same.GROUP, whenever=True),
    Explanation("KLP106", (*_REBALANCING, *_NOT_READING), Same.GROUP, whenever=True),
    Explanation("KLP109", (*_REBALANCING, *_NOT_READING), Same.GROUP, whenever=True),
    Explanation("KLP107", ("KLP301", *_NOT_READING), Same.GROUP, whenever=True),
    # A partition of a topic that cannot be read.
    Explanation("KLP311", _NOT_READING, Same.PARTITION, whenever=True),
    Explanation("KLP306", _NOT_READING, Same.PARTITION, whenever=True),
    Explanation("KLP307", _NOT_READING, Same.PARTITION, whenever=True),
    # Members.
    Explanation("KLP203", (*_REBALANCING, "KLP210", *_NOT_READING), Same.GROUP),
    Explanation("KLP204", (*_REBALANCING, "KLP210", *_NOT_READING), Same.GROUP),
    Explanation("KLP205", (*_REBALANCING, "KLP204", "KLP210", *_NOT_READING), Same.GROUP),
    Explanation("KLP206", ("KLP202", *_NOT_READING), Same.GROUP),
    Explanation("KLP213", _NOT_READING, Same.GROUP),
    Explanation("KLP601", _NOT_READING, Same.GROUP),
    Explanation("KLP211", ("KLP301", *_NOT_READING), Same.PARTITION, whenever=True),
    Explanation("KLP201", ("KLP210", *_NOT_READING), Same.GROUP),
    Explanation("KLP202", _NOT_READING, Same.GROUP),
    # Positions.
    Explanation("KLP317", _NOT_READING, Same.PARTITION, whenever=True),
    Explanation("KLP320", ("KLP310", "KLP312"), Same.GROUP),
    Explanation("KLP319", ("KLP318", "KLP313"), Same.PARTITION),
    Explanation("KLP318", ("KLP303", "KLP313"), Same.PARTITION),
    Explanation("KLP309", ("KLP303", "KLP313"), Same.PARTITION),
    Explanation("KLP310", ("KLP302", "KLP303", "KLP313"), Same.PARTITION),
    Explanation("KLP302", ("KLP301",), Same.PARTITION),
    Explanation("KLP314", ("KLP303", "KLP304", "KLP305", "KLP308"), Same.PARTITION),
    # Kafka removes the offsets of a deleted topic: in some partitions none is left, others have an old one.
    Explanation("KLP314", ("KLP301",), Same.TOPIC),
    Explanation("KLP315", ("KLP207", "KLP309", "KLP310"), Same.GROUP),
    Explanation("KLP305", ("KLP304", "KLP308"), Same.PARTITION),
    Explanation("KLP304", ("KLP308",), Same.PARTITION),
    # Traffic by group, as KoP counts it.
    Explanation("KLP404", ("KLP402", "KLP403"), Same.GROUP),
    Explanation("KLP407", ("KLP402",), Same.GROUP),
    Explanation("KLP407", ("KLP401",), Same.PARTITION),
    # Groups that ZooKeeper keeps.
    Explanation("KLP506", ("KLP501", "KLP502", "KLP503", "KLP505", "KLP508"), Same.GROUP),
    Explanation("KLP505", ("KLP501", "KLP502", "KLP503"), Same.GROUP),
    Explanation("KLP508", ("KLP502",), Same.GROUP),
    Explanation("KLP504", ("KLP501",), Same.GROUP),
    Explanation("KLP502", ("KLP501", "KLP503"), Same.GROUP),
    Explanation("KLP501", ("KLP503",), Same.GROUP),
)


def linked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The same findings in the same order, with ids and with what explains each of them."""
    named = dict(zip(_ids(findings), findings, strict=True))
    index = _Index(named)
    causes = {name: index.causes_of(name, finding) for name, finding in named.items()}
    return tuple(finding.linked(name, _nearest(name, causes)) for name, finding in named.items())


def _ids(findings: Iterable[Finding]) -> Iterator[str]:
    """By code and group, and by cause where one rule may find several things of a group."""
    one_per_group = {code for code, rule in rules().items() if rule.judge is not None}
    known: defaultdict[str, int] = defaultdict(int)
    for finding in findings:
        is_one = finding.group is not None and finding.code in one_per_group
        text = f"{finding.code}\0{finding.group or ''}\0{'' if is_one else finding.cause}"
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        name = f"{finding.code}-{digest[:12]}"
        known[name] += 1
        yield name if known[name] == 1 else f"{name}-{known[name]}"


class _Index:
    """Findings by code and by what they concern, so that thousands are linked in one pass."""

    def __init__(self, findings: Mapping[str, Finding]) -> None:
        self._rows: defaultdict[str, list[Explanation]] = defaultdict(list)
        shared: defaultdict[str, set[Same]] = defaultdict(set)
        for row in CAUSES:
            shared[row.cause].add(row.same)
            for effect in row.effects:
                self._rows[effect].append(row)
        self._found: defaultdict[tuple[object, ...], list[tuple[str, Finding]]] = defaultdict(list)
        for name, finding in findings.items():
            for same in shared.get(finding.code, ()):
                for thing in _things(finding, same):
                    self._found[finding.code, same, thing, finding.group].append((name, finding))
                    if finding.group is not None:
                        self._found[finding.code, same, thing].append((name, finding))

    def causes_of(self, name: str, effect: Finding) -> tuple[str, ...]:
        """In the order of the table."""
        causes: dict[str, None] = {}
        for row in self._rows.get(effect.code, ()):
            for thing in _things(effect, row.same):
                for other, cause in self._sharing(row, thing, effect.group):
                    if other != name and _may_explain(cause, effect, row):
                        causes[other] = None
        return tuple(causes)

    def _sharing(self, row: Explanation, thing: object, group: str | None) -> Iterator[tuple[str, Finding]]:
        """Those that concern this thing and this group, or the cluster. Of the cluster: all of this thing."""
        key = (row.cause, row.same, thing)
        yield from self._found.get((*key, None), ())
        yield from self._found.get((*key, group) if group is not None else key, ())


def _things(finding: Finding, same: Same) -> Iterable[object]:
    if same is Same.GROUP:
        return (finding.group,) if finding.group is not None else ()
    if same is Same.CLUSTER:
        return ("",)
    if same is Same.TOPIC:
        return {name.rpartition("-")[0] for name in finding.partitions}
    return finding.partitions if same is Same.PARTITION else finding.brokers


def _may_explain(cause: Finding, effect: Finding, row: Explanation) -> bool:
    if cause.until is not None and effect.until is None and row.whenever:
        return False  # What is over does not hold anybody up now.
    ended_before = cause.until is not None and cause.until + CLOSE_MS < (effect.since or cause.until)
    over_before = effect.until is not None and effect.until + CLOSE_MS < (cause.since or effect.until)
    began_after = (
        not row.whenever
        and cause.since is not None
        and effect.since is not None
        and effect.since + CLOSE_MS < cause.since
    )
    return not (ended_before or over_before or began_after)


def _nearest(name: str, causes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Without those that explain it only through another cause of it."""
    direct = causes[name]
    if len(direct) < 2:
        return direct
    farther = {above for cause in direct for above in _above(cause, causes)}
    return tuple(cause for cause in direct if cause not in farther)


def _above(name: str, causes: Mapping[str, tuple[str, ...]]) -> set[str]:
    """All that explain it, directly or not."""
    found: set[str] = set()
    left = list(causes[name])
    while left:
        cause = left.pop()
        if cause not in found:
            found.add(cause)
            left += causes[cause]
    return found
