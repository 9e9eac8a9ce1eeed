"""A consumer that is stopped again and again: the doctor does not get used to it."""

from dataclasses import replace
from typing import Any

from kelpie.doctor.case import Case
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.doctor.finding import Finding, Severity
from kelpie.doctor.positions import IllPeriod
from kelpie.examination.examination import ill_groups
from tests.doctor.building import (
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    a_view,
    an_end,
    commits,
    looks,
)

OUTAGES = 4
LOOKS = (25 * SECOND, 51 * SECOND, 78 * SECOND)
"""Into an outage."""
SESSION = 45 * SECOND
CALM, OUTAGE = 3 * MINUTE, 80 * SECOND
BEGIN = NOW - OUTAGES * (CALM + OUTAGE)


def _findings(*, remembers: bool) -> list[list[Finding]]:
    """What each look says of the group, look by look."""
    said: list[list[Finding]] = []
    times: list[int] = []
    ill: list[IllPeriod] = []
    for number in range(OUTAGES):
        start = BEGIN + number * (CALM + OUTAGE)
        times += range(start, start + CALM, 5 * SECOND)
        for into in LOOKS:
            now = times[-1] + into
            history = commits(*((at, (at - BEGIN) // SECOND) for at in times))
            offset = history[-1].offset
            members = [a_member("app-1", 0)] if into < SESSION else []
            state = a_state("Stable" if members else "Empty", *members, at=now)
            ends = [an_end(offset, at=times[-1]), an_end(offset + into // 100, at=now, last_written=now)]
            earlier = an_end(offset + 20, at=times[-1] + 2 * SECOND)
            cluster = a_cluster(ends=[ends[0], earlier, ends[1]], now=now)
            case = a_case(
                cluster=cluster,
                commits=history,
                states=[state],
                history_from=BEGIN,
                ill=tuple(ill) if remembers else (),
                **looks(a_committed(offset, at=now)),
            )
            diagnosis = diagnose_all(cluster, [case])
            said.append([each for each in diagnosis.findings if each.code in ("KLP309", "KLP310")])
            ill += [IllPeriod(each.since, now, each.code) for each in ill_groups(diagnosis, now)]
    return said


def test_the_fourth_outage_is_told_like_the_first() -> None:
    """Past outages must not teach that outages are ordinary: a group that is found ill has no rhythm then."""
    severities = [[finding.severity for finding in findings] for findings in _findings(remembers=True)]
    first = severities[: len(LOOKS)]
    assert first == [[Severity.WARNING]] * len(LOOKS)
    assert severities == first * OUTAGES


def test_an_election_during_an_outage_does_not_make_it_begin_anew() -> None:
    """Seen on 4.3.1: found after 36 s, OK after 52 s, since the preferred leader had been elected, and found
    again after a minute.
    """
    times = range(NOW - 10 * MINUTE, NOW - 52 * SECOND, SECOND)
    history = commits(*((at, (at - times[0]) // SECOND) for at in times), leader_epoch=3)
    offset = history[-1].offset
    elected = a_view(0, 1, topic="orders", leader_epoch=4)
    cluster = a_cluster(elected, ends=[an_end(offset + 50, at=NOW - 40 * SECOND), an_end(offset + 900)])
    given: dict[str, Any] = {"commits": history, "states": [a_state("Empty")], "history_from": times[0]}
    case = a_case(cluster=cluster, **given, **looks(a_committed(offset)))
    assert not _stopped(case), "clients have a minute to find the new leader"
    found_before = IllPeriod(times[-1], NOW - 10 * SECOND, "KLP310")
    (finding,) = _stopped(replace(case, ill=(found_before,)))
    assert finding.severity is Severity.WARNING
    read_since = IllPeriod(times[-1] - 2 * MINUTE, times[-1] - MINUTE, "KLP310")
    assert not _stopped(replace(case, ill=(read_since,)))


def _stopped(case: Case) -> list[Finding]:
    return [each for each in diagnose_all(case.cluster, [case]).findings if each.code == "KLP310"]


def test_a_group_with_records_waiting_is_never_ok_whatever_it_did_before() -> None:
    """Without a store nobody knows that the pauses were outages. Then it is said that they may be usual."""
    for findings in _findings(remembers=False):
        assert findings
