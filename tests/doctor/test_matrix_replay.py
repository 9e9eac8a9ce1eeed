"""The matrix as it was recorded on real Kafka, judged by the rules of today."""

import pytest

from tests.doctor.matrix.kinds import COMMIT_NOTHING, OLD_GROUP, kinds_of
from tests.doctor.matrix.recording import CELLS, cell_name, file_of, replay
from tests.doctor.matrix.situations import SITUATIONS, Situation
from tests.doctor.matrix.watching import loud, wrong


@pytest.mark.parametrize(("release", "situation"), CELLS, ids=cell_name)
def test_the_doctor_says_what_is_so_at_every_moment(release: str, situation: Situation) -> None:
    """A healthy situation: nothing above a notice. A fault: what it is, of those that it hits."""
    kinds = kinds_of(release)
    moments = list(replay(file_of(situation.name, release)))
    assert len(moments) > 12
    listed = {group for moment in moments for row in moment.rows.listings for group in row.groups}
    committed = {row.group for moment in moments for row in moment.rows.committed if row.offset >= 0}
    seen = committed | (listed & COMMIT_NOTHING)
    assert seen >= {*kinds, OLD_GROUP} - situation.hidden, "every kind of group was there to be judged"
    assert not (found := wrong(situation, moments, kinds)), "\n".join(found)


def test_a_group_that_takes_long_to_come_back_after_a_restart_is_not_stalled() -> None:
    """Its producer waited for the coordinator of its transactions for 25 s after all brokers were back."""
    moments = list(replay(file_of("slow-failover", "4.3.1")))
    assert [loud(moment.findings) for moment in moments] == [{}] * 39


def test_each_situation_is_recorded_on_each_release_that_has_it() -> None:
    """A cell that is missing would go unnoticed."""
    cells = [(release, situation) for situation in SITUATIONS.values() for release in situation.releases]
    missing = [file_of(each.name, release).name for release, each in cells if (release, each) not in CELLS]
    assert not missing
