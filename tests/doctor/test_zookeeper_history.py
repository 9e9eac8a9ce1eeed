"""The past of groups that ZooKeeper keeps, in a recording of Kafka 0.8.2.2."""

from collections.abc import Mapping

import pytest

from kelpie.doctor.case import Case
from kelpie.doctor.cases import build
from kelpie.doctor.group_history import EXPIRED, LEFT, UNKNOWN
from kelpie.doctor.zookeeper.history import history_in_zookeeper
from kelpie.evidence import read_evidence
from kelpie.observations import Registration, ZooKeeperGroup
from kelpie.observations.zookeeper_groups import StoredOffset
from tests.doctor.building import NOW, a_case, a_cluster
from tests.evidence import unpacked


@pytest.fixture(scope="module")
def groups() -> Mapping[str, Case]:
    _, cases = build(read_evidence([unpacked("kafka-0.8.2.2-rebalance-failure")]))
    return {case.group: case for case in cases}


def test_members_come_and_go(groups: Mapping[str, Case]) -> None:
    history = history_in_zookeeper(groups["orders-a"])
    assert [value.value for value in history.members] == [3, 3, 2, 2, 3, 3, 0, 0]
    assert [len(each.joined) - len(each.left) for each in history.rebalances] == [-1, 1, -3]
    assert {each.why for each in history.departures} == {LEFT}
    assert all("shutdown completed" in each.text for each in history.departures)


def test_a_session_that_expired_is_a_departure_though_the_member_came_back(
    groups: Mapping[str, Case],
) -> None:
    history = history_in_zookeeper(groups["orders-d-fail"])
    first = history.rebalances[0]
    assert first.joined == first.left == ("app-02-1794780766134-eff06ad6",)
    assert [each.why for each in history.departures].count(EXPIRED) == 1


def test_a_member_that_was_killed_left_no_word(groups: Mapping[str, Case]) -> None:
    history = history_in_zookeeper(groups["orders-c"])
    assert [each.why for each in history.departures] == [LEFT, UNKNOWN, LEFT, LEFT]


def test_every_group_has_read(groups: Mapping[str, Case]) -> None:
    for case in groups.values():
        assert max(value.value for value in history_in_zookeeper(case).records) > 1


def test_a_file_without_sessions_shows_no_rebalance() -> None:
    def look(at: int, session: int | None, offset: int) -> ZooKeeperGroup:
        members = (Registration("billing_a", session=session),)
        return ZooKeeperGroup("billing", members, (), (StoredOffset("orders", 0, offset),), at)

    rows = (look(NOW - 2000, 7, 10), look(NOW - 1000, None, 30), look(NOW, 7, 20))
    case = a_case("billing", a_cluster(), in_zookeeper=True).with_fields(zookeeper=rows)
    history = history_in_zookeeper(case)
    assert not history.rebalances
    assert [value.value for value in history.records] == [20, 0]
