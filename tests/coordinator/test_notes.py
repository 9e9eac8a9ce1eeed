"""What a coordinator has to tell to whoever keeps its log: what happened, in the order in which it did.

That these are the lines of real brokers, in their order, is for tests/lab/personas/test_broker_log.py.
"""

from kelpie.coordinator.config import GroupConfig
from kelpie.coordinator.notes import Note, NoteKind, note
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

    def heard(self) -> list[NoteKind]:
        """What was told since it was asked last."""
        told, self.told = self.told, []
        return [each.kind for each in told]


def test_a_member_comes_and_goes() -> None:
    """From the id that it is given to the group that it leaves empty."""
    group = Group(driver := Listening())
    (member,) = group.stable()
    assert driver.heard() == [
        NoteKind.ID_GIVEN,
        NoteKind.PENDING_ADDED,
        NoteKind.REBALANCE_BEGAN,
        NoteKind.GENERATION_BEGAN,
        NoteKind.ASSIGNED,
    ]
    group.leave(member)
    assert [each.values.get("reason", note(NoteKind.LEFT)).kind for each in driver.told] == [
        NoteKind.LEFT,
        NoteKind.BY_LEAVING,
        NoteKind.LEFT,
    ]
    assert driver.heard() == [NoteKind.LEFT, NoteKind.REBALANCE_BEGAN, NoteKind.EMPTIED]


def test_members_that_are_gone() -> None:
    """A session that ends, a rebalance that somebody misses, a sync that does not come."""
    group = Group(driver := Listening())
    first, second = group.stable(2)
    driver.heard()
    driver.pass_time(SESSION_MS)
    assert driver.heard() == [
        NoteKind.FAILED,
        NoteKind.REBALANCE_BEGAN,
        NoteKind.FAILED,
        NoteKind.EMPTIED,
    ]
    first, second = group.completing(2)
    driver.heard()
    for _ in range(0, REBALANCE_MS, SESSION_MS // 2):
        group.heartbeat(first, group.generation)
        group.heartbeat(second, group.generation)
        driver.pass_time(SESSION_MS // 2)
    told = [each for each in driver.told if each.kind is NoteKind.UNSYNCED_REMOVED]
    assert [each.values["members"] for each in told] == [sorted([first, second])]


def test_a_record_that_cannot_be_written_begins_a_rebalance() -> None:
    """The note comes with the outcome of the failure, not with that of the request."""
    group = Group(driver := Listening())
    (leader,) = group.completing()
    driver.heard()
    driver.broken = ErrorCode.NOT_ENOUGH_REPLICAS
    group.sync(leader, group.generation, {leader: b""})
    assigned, began = driver.told
    assert (assigned.kind, began.kind) == (NoteKind.ASSIGNED, NoteKind.REBALANCE_BEGAN)
    assert began.values["reason"] == note(
        NoteKind.BY_FAILED_WRITE, error="NOT_ENOUGH_REPLICAS", member=leader
    )


def test_groups_and_offsets_that_end() -> None:
    """Deleted by an administrator, or too old."""
    group = Group(driver := Listening())
    group.commit()
    group.delete()
    assert driver.heard() == [NoteKind.SIMPLE_GROUP_CREATED, NoteKind.GROUP_DELETED]
    group.commit()
    driver.pass_time(driver.config.offsets_retention_ms + driver.config.offsets_retention_check_interval_ms)
    assert note(NoteKind.EXPIRED, offsets=1, tombstones=2) in driver.told


def test_a_group_that_is_too_large_when_it_is_loaded() -> None:
    """It is told that it was loaded, then why it rebalances."""
    group = Group(driver := Listening())
    group.stable(2)
    driver.config = GroupConfig(max_size=1)
    shard, outcome = driver.reloaded()
    del shard
    loaded, began = outcome.notes
    assert (loaded.kind, loaded.values["count"]) == (NoteKind.GROUP_LOADED, 2)
    assert began.values["reason"].kind is NoteKind.BY_SIZE
