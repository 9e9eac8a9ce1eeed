"""Faults of Kafka's group coordinator that are known, by release, with what people see of each.

The numbers are those of Kafka's issue tracker (issues.apache.org/jira/browse/KAFKA-…). A fault is in all
releases from `since` on, and no longer in `fixed`; `also_fixed` are releases of older lines that have the
correction. The releases were looked up in the code of the published jars; `inferred` names what was not.

A survey knows a release only by the versions of requests that it speaks, and often only a range ("2.4" is 2.4
to 2.7); logs of brokers have it exactly. So a fault may be there (`may_have`), or is there (`has`).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from kelpie.doctor.case import Case

Version = tuple[int, ...]

_NUMBER = re.compile(r"\d{1,4}")
_LATEST = 9999
_RANGES: dict[str, tuple[Version, Version]] = {
    "0.9": ((0, 9), (0, 9, _LATEST)),
    "0.10.0": ((0, 10, 0), (0, 10, 0, _LATEST)),
    "0.10.1": ((0, 10, 1), (0, 10, 1, _LATEST)),
    "0.10.2": ((0, 10, 2), (0, 10, 2, _LATEST)),
    "0.11": ((0, 11), (0, 11, _LATEST)),
    "1.x": ((1, 0), (1, 1, _LATEST)),
    "2.0": ((2, 0), (2, 0, _LATEST)),
    "2.1": ((2, 1), (2, 2, _LATEST)),
    "2.3": ((2, 3), (2, 3, _LATEST)),
    "2.4": ((2, 4), (2, 7, _LATEST)),
    "2.8": ((2, 8), (3, 0, _LATEST)),
    "3.0": ((3, 0), (3, 0, _LATEST)),
    "3.1": ((3, 1), (3, 6, _LATEST)),
    "3.7": ((3, 7), (3, 7, _LATEST)),
    "3.8": ((3, 8), (3, 8, _LATEST)),
    "3.9": ((3, 9), (3, 9, _LATEST)),
    "4.x": ((4, 0), (4, _LATEST)),
}
"""What the releases that a survey concludes stand for (`client.survey.brokers`)."""


LISTED_TWICE = "two brokers list the group as theirs"
_LISTED_BY = "listed by broker "


@dataclass(frozen=True, slots=True)
class KnownFault:
    issue: str
    since: Version
    fixed: Version
    symptom: str
    """The code of the finding that it looks like; LISTED_TWICE: there is no such finding."""
    what: str
    also_fixed: tuple[str, ...] = ()
    condition: Callable[[Case], bool] = lambda _: True
    """What must be there besides."""
    inferred: str = ""
    """What of this row follows from the tracker, or from when code was merged, and was not seen in jars."""


def _has_static_members(case: Case) -> bool:
    return any(member.instance_id for roster in case.rosters for member in roster)


def listed_by(case: Case) -> list[str]:
    """The brokers that list the group, by number."""
    return sorted(
        source.removeprefix(_LISTED_BY) for source in case.known_from if source.startswith(_LISTED_BY)
    )


def _had_members(case: Case) -> bool:
    return bool(case.members)


FAULTS = (
    KnownFault(
        "KAFKA-4362",
        (0, 10),
        (0, 10, 2),
        LISTED_TWICE,
        "after partitions of __consumer_offsets were moved, the old coordinator goes on as if it were one; a "
        "restart of that broker ends it",
        ("0.10.1.1",),
        inferred="that 0.10.0 has it: its code is the same, and the tracker names 0.10.1.0 only",
    ),
    KnownFault(
        "KAFKA-8653",
        (2, 3),
        (2, 3, 1),
        "KLP201",
        "members that join with version 0 of JoinGroup (clients before 0.10.1) get a rebalance timeout of 0, "
        "so each rebalance throws the others out",
    ),
    KnownFault(
        "KAFKA-9752",
        (2, 2),
        (2, 5),
        "KLP202",
        "a new member that joins with an old version of JoinGroup and times out can leave the rebalance "
        "stuck; a restart of the coordinator ends it",
        inferred="that 2.2 is the first",
    ),
    KnownFault(
        "KAFKA-14422",
        (2, 3),
        (3, 4),
        "KLP202",
        "a static member joins while the leader of the group is a client before 2.3: the answer to the "
        "leader cannot be written, and the rebalance never ends until the coordinator is restarted",
        ("3.3.2",),
        _has_static_members,
    ),
    KnownFault(
        "KAFKA-13636",
        (2, 4),
        (3, 2),
        "KLP302",
        "offsets that are older than the retention are deleted during a rebalance, although members read "
        "them",
        ("2.8.2", "3.0.1", "3.1.1"),
        _had_members,
    ),
    KnownFault(
        "KAFKA-19862",
        (4, 0),
        (4, 2),
        "KLP102",
        "loading a partition of __consumer_offsets fails if it is compacted at the same time; the "
        "coordinator then answers for none of its groups until it moves or is restarted",
        ("4.0.2", "4.1.2"),
    ),
    KnownFault(
        "KAFKA-20115",
        (4, 0, 1),
        (4, 2),
        LISTED_TWICE,
        "a broker that loses a partition of __consumer_offsets while a write is pending does not stop to "
        "coordinate its groups; a restart of that broker ends it",
        ("4.0.2", "4.1.2"),
    ),
)


def range_of(release: str) -> tuple[Version, Version] | None:
    """The first and the last version that a release may stand for. None: it is not known."""
    if release in _RANGES:
        return _RANGES[release]
    numbers = tuple(int(number) for number in _NUMBER.findall(release.partition("-")[0]))
    return (numbers, numbers) if len(numbers) >= 2 else None


def may_have(fault: KnownFault, versions: tuple[Version, Version]) -> bool:
    first, last = versions
    exact = ".".join(map(str, first)) if first == last else ""
    return last >= fault.since and first < fault.fixed and not _is_corrected(fault, exact)


def has(fault: KnownFault, versions: tuple[Version, Version]) -> bool:
    """Whether every version that it may be has the fault."""
    first, last = versions
    return may_have(fault, versions) and first >= fault.since and last < fault.fixed and first == last


def _is_corrected(fault: KnownFault, release: str) -> bool:
    """Whether it is a later release of an older line, which has the correction."""
    mine = tuple(int(number) for number in _NUMBER.findall(release))
    lines = (tuple(int(number) for number in _NUMBER.findall(each)) for each in fault.also_fixed)
    return any(mine[:-1] == line[:-1] and mine >= line for line in lines if mine)
