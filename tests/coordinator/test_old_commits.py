"""Offsets and filters of old releases, where they differ from later ones; seen on real 0.9.0.1 and 2.8.2."""

import pytest

from kelpie.coordinator.config import CONFIG_0_9, GroupConfig
from kelpie.coordinator.outcome import Outcome
from kelpie.coordinator.release_behaviour import (
    BEHAVIOUR_0_9,
    BEHAVIOUR_2_8,
    BEHAVIOUR_3_9,
    BEHAVIOUR_4_3,
    GroupBehaviour,
)
from tests.coordinator.clients import Group
from tests.coordinator.driver import Driver


def metadata(group: Group) -> str | None:
    found: str | None = group.fetch_call().answer.topics[0].partitions[0].metadata
    return found


@pytest.mark.parametrize(
    ("behaviour", "config", "seen"),
    [(BEHAVIOUR_0_9, CONFIG_0_9, None), (BEHAVIOUR_2_8, None, ""), (BEHAVIOUR_4_3, None, "")],
    ids=["0.9", "2.8", "4.3"],
)
def test_0_9_remembers_that_an_offset_had_no_metadata(
    behaviour: GroupBehaviour, config: GroupConfig | None, seen: str | None
) -> None:
    """Only in memory: the log has an empty text, which the next coordinator reads."""
    group = Group(Driver(behaviour, config))
    group.commit(1, metadata="some")
    assert metadata(group) == "some"
    group.commit(2, metadata=None)
    assert metadata(group) == seen
    record = group.driver.log[-1].record
    assert record is not None
    group.driver.shard.replay(record.key, record.value, offset=1)
    assert metadata(group) == ""


@pytest.mark.parametrize(
    ("behaviour", "found"),
    [(BEHAVIOUR_2_8, 0), (BEHAVIOUR_3_9, 1), (BEHAVIOUR_4_3, 1)],
    ids=["2.8", "3.9", "4.3"],
)
def test_2_8_wants_states_spelt_exactly(behaviour: GroupBehaviour, found: int) -> None:
    """ListGroups of later releases takes "stable" for Stable."""
    group = Group(Driver(behaviour))
    group.stable()
    assert len(group.driver.shard.listed(["stable"])) == found
    assert len(group.driver.shard.listed(["Stable"])) == 1


@pytest.mark.parametrize(
    ("behaviour", "sequence"),
    [(BEHAVIOUR_2_8, 0), (BEHAVIOUR_3_9, 0), (BEHAVIOUR_4_3, -1)],
    ids=["2.8", "3.9", "4.3"],
)
def test_scala_counts_batches_of_offsets_from_0(
    behaviour: GroupBehaviour, sequence: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a producer would, though there is none; groups are written without."""
    group = Group(Driver(behaviour))
    seen: list[Outcome] = []
    carry_out = group.driver.carry_out

    def keep(outcome: Outcome) -> None:
        seen.append(outcome)
        carry_out(outcome)

    monkeypatch.setattr(group.driver, "carry_out", keep)
    group.commit(1)
    assert [outcome.sequence for outcome in seen if outcome.records] == [sequence]
    seen.clear()
    group.stable()
    assert {outcome.sequence for outcome in seen if outcome.records} == {-1}
