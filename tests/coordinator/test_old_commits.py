"""Offsets and filters of old releases, where they differ from later ones; seen on real 0.9.0.1 and 2.8.2."""

import pytest

from kelpie.coordinator.config import CONFIG_0_9, GroupConfig
from kelpie.coordinator.manners import MANNERS_0_9, MANNERS_2_8, MANNERS_3_9, MANNERS_4_3, Manners
from kelpie.coordinator.outcome import Outcome
from tests.coordinator.clients import Group
from tests.coordinator.driver import Driver


def metadata(group: Group) -> str | None:
    found: str | None = group.fetch_call().answer.topics[0].partitions[0].metadata
    return found


@pytest.mark.parametrize(
    ("manners", "config", "seen"),
    [(MANNERS_0_9, CONFIG_0_9, None), (MANNERS_2_8, None, ""), (MANNERS_4_3, None, "")],
    ids=["0.9", "2.8", "4.3"],
)
def test_0_9_remembers_that_an_offset_had_no_metadata(
    manners: Manners, config: GroupConfig | None, seen: str | None
) -> None:
    """Only in memory: the log has an empty text, which the next coordinator reads."""
    group = Group(Driver(manners, config))
    group.commit(1, metadata="some")
    assert metadata(group) == "some"
    group.commit(2, metadata=None)
    assert metadata(group) == seen
    record = group.driver.log[-1].record
    assert record is not None
    group.driver.shard.replay(record.key, record.value, offset=1)
    assert metadata(group) == ""


@pytest.mark.parametrize(
    ("manners", "found"), [(MANNERS_2_8, 0), (MANNERS_3_9, 1), (MANNERS_4_3, 1)], ids=["2.8", "3.9", "4.3"]
)
def test_2_8_wants_states_spelt_exactly(manners: Manners, found: int) -> None:
    """ListGroups of later releases takes "stable" for Stable."""
    group = Group(Driver(manners))
    group.stable()
    assert len(group.driver.shard.listed(["stable"])) == found
    assert len(group.driver.shard.listed(["Stable"])) == 1


@pytest.mark.parametrize(
    ("manners", "sequence"),
    [(MANNERS_2_8, 0), (MANNERS_3_9, 0), (MANNERS_4_3, -1)],
    ids=["2.8", "3.9", "4.3"],
)
def test_scala_counts_batches_of_offsets_from_0(
    manners: Manners, sequence: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a producer would, though there is none; groups are written without."""
    group = Group(Driver(manners))
    seen: list[Outcome] = []
    carry_out = group.driver.carry_out
    monkeypatch.setattr(
        group.driver, "carry_out", lambda outcome: (seen.append(outcome), carry_out(outcome))[1]
    )
    group.commit(1)
    assert [outcome.sequence for outcome in seen if outcome.records] == [sequence]
    seen.clear()
    group.stable()
    assert {outcome.sequence for outcome in seen if outcome.records} == {-1}
