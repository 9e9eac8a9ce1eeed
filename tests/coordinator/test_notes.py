"""What a coordinator has to tell to whoever keeps its log: what happened, in the order in which it did.

That these are the lines of real brokers, in their order, is for tests/lab/personas/test_broker_log.py.
"""

from kelpie.coordinator.config import GroupConfig
from kelpie.coordinator.notes import Note, What, note
from kelpie.coordinator.outcome import Outcome
from kelpie.errors import ErrorCode
from tests.coordinator.clients import REBALANCE_MS, SESSION_MS, Group
from tests.coordinator.driver import Driver


class Listening(Driver):
    def __init__(self, config: GroupConfig | None = None) -> None:
        self.told: list[Note] = []
        super().__init__(config=config)

    def carry_out(self, outcome: Outcome) -> None:
        self.told += outcome.notes
        super().carry_out(outcome)

    def heard(self) -> list[What]:
        """What was told since it was asked last."""
        told, self.told = self.told, []
        return [each.what for each in told]


def test_a_member_comes_and_goes() -> None:
    """From the id that it is given to the group that it leaves empty."""
    group = Group(driver := Listening())
    (member,) = group.stable()
    assert driver.heard() == [
        What.ID_GIVEN,
        What.PENDING_ADDED,
        What.REBALANCE_BEGAN,
        What.GENERATION_BEGAN,
        What.ASSIGNED,
    ]
    group.leave(member)
    assert [each.values.get("reason", note(What.LEFT)).what for each in driver.told] == [
        What.LEFT,
        What.BY_LEAVING,
        What.LEFT,
    ]
    assert driver.heard() == [What.LEFT, What.REBALANCE_BEGAN, What.EMPTIED]


def test_members_that_are_gone() -> None:
    """A session that ends, a rebalance that somebody misses, a sync that does not come."""
    group = Group(driver := Listening())
    first, second = group.stable(2)
    driver.heard()
    driver.pass_time(SESSION_MS)
    assert driver.heard() == [
        What.FAILED,
        What.REBALANCE_BEGAN,
        What.FAILED,
        What.EMPTIED,
    ]
    first, second = group.completing(2)
    driver.heard()
    for _ in range(0, REBALANCE_MS, SESSION_MS // 2):
        group.heartbeat(first, group.generation)
        group.heartbeat(second, group.generation)
        driver.pass_time(SESSION_MS // 2)
    told = [each for each in driver.told if each.what is What.UNSYNCED_REMOVED]
    assert [each.values["members"] for each in told] == [sorted([first, second])]


def test_a_record_that_cannot_be_written_begins_a_rebalance() -> None:
    """The note comes with the outcome of the failure, not with that of the request."""
    group = Group(driver := Listening())
    (leader,) = group.completing()
    driver.heard()
    driver.broken = ErrorCode.NOT_ENOUGH_REPLICAS
    group.sync(leader, group.generation, {leader: b""})
    assigned, began = driver.told
    assert (assigned.what, began.what) == (What.ASSIGNED, What.REBALANCE_BEGAN)
    assert began.values["reason"] == note(What.BY_FAILED_WRITE, error="NOT_ENOUGH_REPLICAS", member=leader)


def test_groups_and_offsets_that_end() -> None:
    """Deleted by an administrator, or too old."""
    group = Group(driver := Listening())
    group.commit()
    group.delete()
    assert driver.heard() == [What.SIMPLE_GROUP_CREATED, What.GROUP_DELETED]
    group.commit()
    driver.pass_time(driver.config.offsets_retention_ms + driver.config.offsets_retention_check_interval_ms)
    assert note(What.EXPIRED, offsets=1, tombstones=2) in driver.told


def test_a_group_that_is_too_large_when_it_is_loaded() -> None:
    """It is told that it was loaded, then why it rebalances."""
    group = Group(driver := Listening())
    group.stable(2)
    driver.config = GroupConfig(max_size=1)
    shard, outcome = driver.reloaded()
    del shard
    loaded, began = outcome.notes
    assert (loaded.what, loaded.values["count"]) == (What.GROUP_LOADED, 2)
    assert began.values["reason"].what is What.BY_SIZE


def test_outcomes_that_are_added_keep_their_notes_in_order() -> None:
    """A driver may put two together."""
    first, second = (Outcome(notes=(note(what),)) for what in (What.LOADING, What.LOADED))
    assert [each.what for each in (first + second).notes] == [What.LOADING, What.LOADED]
