"""Groups that a request creates although it stores nothing; names and versions that nobody should send."""

import pytest

from kelpie.coordinator.release_behaviour import BEHAVIOUR_3_9, BEHAVIOUR_4_3, GroupBehaviour
from kelpie.errors import ErrorCode
from tests.coordinator.clients import DELAY_MS, RANGE, TOPIC, Group, subscription
from tests.coordinator.driver import Driver

TOO_LONG = "x" * 4097


@pytest.mark.parametrize("behaviour", [BEHAVIOUR_3_9, BEHAVIOUR_4_3], ids=lambda each: each.release)
def test_commit_that_is_too_large_creates_the_group(behaviour: GroupBehaviour) -> None:
    """Kafka creates it before it looks at the metadata; only memory knows of it."""
    group = Group(Driver(behaviour))
    assert group.commit(metadata=TOO_LONG) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert group.state == "Empty"
    assert not group.driver.log
    assert group.delete().error == ErrorCode.NONE
    assert group.delete().error == ErrorCode.GROUP_ID_NOT_FOUND


def test_transactional_commit_that_is_too_large_creates_the_group() -> None:
    """The same way."""
    group = Group(Driver())
    assert group.commit_in_transaction(1, metadata=TOO_LONG) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert group.state == "Empty"
    assert not group.driver.log


@pytest.mark.parametrize(("version", "told"), [(6, ""), (7, None), (9, None)])
def test_protocol_without_a_name_is_null_where_null_can_be_told(version: int, told: str | None) -> None:
    """JoinGroup v7 can say that there is none (KIP-559), and a name without text counts as none."""
    group = Group(Driver())
    _, call = group.with_id(version=version, protocols=(("", RANGE[0][1]),))
    group.driver.pass_time(DELAY_MS)
    assert call.error == ErrorCode.NONE
    assert call.answer.protocol_name == told


def test_subscription_of_a_negative_version_is_read() -> None:
    """Kafka takes the version off and reads the rest as version 0, whatever it says."""
    group = Group(Driver())
    group.with_id(protocols=(("range", b"\xff\xfe" + subscription(TOPIC)[2:]),))
    group.driver.pass_time(DELAY_MS)
    assert group.driver.group().subscribed == frozenset({TOPIC})
