"""Faults that the doctor finds after minutes, on real Kafka 4.3.1: as recorded, and live."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.doctor.matrix.recording import replay
from tests.doctor.matrix.watching import Moment, loud
from tests.doctor.slow_faults.groups import (
    FAULTS_OF_MINUTES,
    LOUD,
    NEAR_MISSES,
    NOT_BEFORE_MIN,
    NOTICES,
    ON_THE_WAY,
)
from tests.doctor.slow_faults.record import FILE
from tests.doctor.slow_faults.world import World, a_patient_broker

_MINUTE_MS = 60_000
_FAULTS = LOUD.keys() | NOTICES.keys()


def _check(moments: Sequence[Moment]) -> None:
    """At every moment nothing but the truth, and not too early; in the end all of it."""
    for moment in moments:
        minutes = (moment.now - moments[0].now) / _MINUTE_MS
        for code, groups in loud(moment.findings).items():
            assert {(code, group) for group in groups} <= {*LOUD.items(), *ON_THE_WAY}, (minutes, groups)
            assert minutes + 1 >= NOT_BEFORE_MIN.get(code, 0), (minutes, code, groups)
        told = {finding.group for finding in moment.findings if finding.code in _FAULTS}
        assert not told & NEAR_MISSES, minutes
    last = moments[-1]
    assert loud(last.findings) == {code: {group} for code, group in LOUD.items()}
    for code, noticed in NOTICES.items():
        assert noticed <= {each.group for each in last.findings if each.code == code}, code


@pytest.fixture(scope="module")
def moments() -> list[Moment]:
    return list(replay(FILE))


def test_each_group_has_its_own_fault_and_near_misses_have_none(moments: list[Moment]) -> None:
    """With members of librdkafka and of kafka-python."""
    assert {row.group for row in moments[-1].rows.states} >= FAULTS_OF_MINUTES.groups
    _check(moments)


def test_findings_have_the_numbers_of_what_was_done(moments: list[Moment]) -> None:
    """Partitions, offsets, clients and shares as they were set up."""
    told = {(each.code, each.group): each.summary for each in moments[-1].findings}
    assert "no member is assigned orders-2, which it subscribes to" in told["KLP211", "left-out"]
    assert "billing-1 for payments and returns-1 for refunds" in told["KLP212", "two-applications"]
    assert "has been at offset 50 of payments-0 for" in told["KLP317", "poison"]
    assert "falls behind in views-" in told["KLP318", "slow"]
    assert "producers write 30 records a second" in told["KLP318", "slow"]
    assert "is behind in clicks-0 alone: 77% of the records" in told["KLP319", "hot"]
    assert "works off a backlog in history-" in told["KLP318", "catching-up"]


@pytest.mark.real
@pytest.mark.long
def test_the_same_holds_live(available: Callable[[], AbstractContextManager[None]], tmp_path: Path) -> None:
    """It takes a quarter of an hour."""
    with available(), a_patient_broker() as cluster:
        _check(World(cluster, FAULTS_OF_MINUTES).watched(tmp_path))
