"""KLP318 on real Kafka 4.3.1 for an hour: as recorded, and live."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kelpie.doctor.finding import Severity
from tests.doctor.matrix.recording import replay
from tests.doctor.matrix.watching import Moment, loud
from tests.doctor.slow_faults.an_hour import AN_HOUR, FALL_BEHIND
from tests.doctor.slow_faults.record import FILE_OF_AN_HOUR
from tests.doctor.slow_faults.world import World, a_patient_broker

_MINUTE_MS = 60_000


def _check(moments: Sequence[Moment]) -> None:
    """A notice for the first hour, then a warning; nothing else of any group."""
    for moment in moments:
        minutes = (moment.now - moments[0].now) / _MINUTE_MS
        for code, groups in loud(moment.findings).items():
            said = {(code, group) for group in groups}
            assert said <= {("KLP318", group) for group in FALL_BEHIND}, (minutes, said)
            assert not said or minutes > 59, (minutes, said)
    last = moments[-1]
    assert {row.group for row in last.rows.states} >= AN_HOUR.groups
    warned = {each.group for each in last.findings if each.severity is Severity.WARNING}
    assert warned == FALL_BEHIND


def test_a_lag_that_grows_for_an_hour_is_a_warning() -> None:
    """With a classic group and one of KIP-848. A group that keeps up, one that commits rarely, one that reads
    in bursts, a peak that is over and a backlog that shrinks are none.
    """
    moments = list(replay(FILE_OF_AN_HOUR))
    _check(moments)
    told = {each.group: each.summary for each in moments[-1].findings if each.code == "KLP318"}
    for group in FALL_BEHIND:
        assert f"Group {group} falls behind in views-" in told[group]
        assert ", for 1 h" in told[group]
    assert "works off a backlog in history-" in told["catching-up"]


@pytest.mark.real
@pytest.mark.long
def test_the_same_holds_live(available: Callable[[], AbstractContextManager[None]], tmp_path: Path) -> None:
    """It takes an hour."""
    with available(), a_patient_broker() as cluster:
        _check(World(cluster, AN_HOUR).watched(tmp_path))
