"""The matrix as it was recorded on real Kafka, judged by the rules of today."""

import pytest
from _pytest.mark import ParameterSet

from tests.doctor.matrix.recording import file_of, replay
from tests.doctor.matrix.situations import KINDS_OF_GROUPS, SITUATIONS, Situation
from tests.doctor.matrix.watching import Moment, wrong
from tests.doctor.matrix.world import OLD_GROUP


def recorded(situation: Situation) -> list[Moment]:
    file = file_of(situation.name)
    if not file.exists():
        pytest.skip(f"not recorded: python -m tests.doctor.matrix.record {situation.name}")
    return list(replay(file))


def _cell(situation: Situation) -> ParameterSet:
    fault = situation.known_fault
    marks = [pytest.mark.xfail(strict=True, raises=AssertionError, reason=fault)] if fault else []
    return pytest.param(situation, id=situation.name, marks=marks)


@pytest.mark.parametrize("situation", [_cell(each) for each in SITUATIONS.values()])
def test_the_doctor_says_what_is_so_at_every_moment(situation: Situation) -> None:
    """A healthy situation: nothing above a notice. A fault: what it is, of those that it hits."""
    moments = recorded(situation)
    assert len(moments) > 12
    seen = {row.group for moment in moments for row in moment.rows.committed}
    assert seen >= {*KINDS_OF_GROUPS, OLD_GROUP}, "every kind of group was there to be judged"
    assert not (found := wrong(situation, moments)), "\n".join(found)
