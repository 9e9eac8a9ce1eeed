"""Groups at a glance: the numbers are those of the rows, and what is not known is not shown as 0."""

from kelpie.doctor.finding import Finding, Severity
from kelpie.doctor.overview import IN_ZOOKEEPER, GroupOverview, idle_members, overview, partitions_of
from kelpie.model.names import TopicPartition
from kelpie.observations.earlier import EARLIER_SURVEY
from kelpie.observations.groups import SharePosition
from kelpie.observations.zookeeper_groups import OwnerNode, Registration, StoredOffset, ZooKeeperGroup
from tests.doctor.building import (
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    a_view,
    an_end,
    commits,
    looks,
)


def _row(*arguments: object, findings: tuple[Finding, ...] = (), **fields: object) -> GroupOverview:
    (row,) = overview([a_case(*arguments, **fields)], findings)  # type: ignore[arg-type]
    return row


def test_a_healthy_group_has_everything() -> None:
    """Two partitions: 30 records are left in one of them, the oldest was written up to a minute ago."""
    cluster = a_cluster(
        ends=[
            an_end(100, at=NOW - MINUTE),
            an_end(130),
            an_end(50, partition=1, at=NOW - MINUTE),
            an_end(50, partition=1),
        ]
    )
    history = commits((NOW - 2 * MINUTE, 100)) + commits(
        (NOW - 2 * MINUTE, 20), (NOW - SECOND, 50), partition=1
    )
    case = a_case(
        cluster=cluster,
        states=[a_state("Stable", a_member("one", 0), a_member("two", 1), a_member("three"))],
        commits=history,
        committed=[a_committed(100), a_committed(50, partition=1)],
    )
    (row,) = overview([case], ())
    assert (row.kind, row.state, row.protocol, row.members) == ("classic", "Stable", "range", 3)
    assert (row.offsets_partition, row.coordinator) == (
        cluster.home_of("billing").partition,  # type: ignore[union-attr]
        cluster.coordinator_of("billing"),
    )
    assert (row.lag, row.lag_is_whole, row.lag_ms, row.may_be_older) == (30, True, MINUTE, False)
    assert row.lag_change == (30 - 0) + (0 - 30)
    assert row.last_commit == NOW - SECOND
    assert row.worst is None

    first, second = partitions_of(case)
    assert (first.name, first.offset, first.end, first.lag) == (TopicPartition("orders", 0), 100, 130, 30)
    assert (first.member_id, second.member_id, second.lag) == ("one", "two", 0)
    assert [member.member_id for member in idle_members(case)] == ["three"]


def test_a_share_group_shows_its_start_and_what_the_broker_counts_as_left() -> None:
    """Records behind the start may be done, too: fewer are left than lie between it and the end."""
    state = a_state(
        "Stable",
        a_member("one", 0),
        kind="share",
        protocol_type="share",
        share_positions=(SharePosition("orders", 0, 40, 25),),
    )
    case = a_case(cluster=a_cluster(ends=[an_end(100)]), states=[state])
    (partition,) = partitions_of(case)
    assert (partition.offset, partition.end, partition.lag, partition.member_id) == (40, 100, 25, "one")
    (row,) = overview([case], ())
    assert (row.kind, row.lag, row.lag_is_whole) == ("share", 25, True)


def test_what_is_not_known_is_not_zero() -> None:
    """Neither members nor lag of a group whose coordinator says nothing; a sum that lacks a part says so."""
    row = _row(known_from=("a log",))
    assert (row.state, row.members, row.lag, row.lag_ms, row.lag_change) == ("", None, None, None, None)
    partly = _row(
        cluster=a_cluster(ends=[an_end(130)]), committed=[a_committed(100), a_committed(50, partition=1)]
    )
    assert (partly.lag, partly.lag_is_whole) == (30, False)
    listing = _row(states=[a_state("Stable")])
    assert (listing.state, listing.members) == ("Stable", None)
    assert _row(states=[a_state("Empty")]).members == 0


def test_a_state_of_before_is_not_the_state_of_now() -> None:
    """An earlier survey saw it stable, or its coordinator has died since it said so."""
    earlier = _row(states=[a_state("Stable", a_member("one", 0), source=EARLIER_SURVEY, at=NOW - MINUTE)])
    assert (earlier.state, earlier.members) == ("", None)
    leaderless = a_cluster(*(a_view(number, -1) for number in range(50)))
    assert _row(cluster=leaderless, states=[a_state("Stable", a_member("one", 0))]).state == ""


def test_the_trend_needs_two_looks() -> None:
    """Ends alone show what was written, and not what was read."""
    cluster = a_cluster(ends=[an_end(100, at=NOW - 2 * MINUTE), an_end(160)])
    assert _row(cluster=cluster, committed=[a_committed(100)]).lag_change is None
    seen = looks(a_committed(40, at=NOW - 2 * MINUTE), a_committed(130))
    assert _row(cluster=cluster, **seen).lag_change == (30 - 60) / 2


def test_the_worst_finding_that_lasts_counts() -> None:
    """One that is over does not, and one of another group does not."""
    notice = Finding("KLP308", "never-commits", Severity.NOTICE, "billing", "It never commits.", "", ())
    warning = Finding("KLP309", "stalled", Severity.WARNING, "billing", "It stands still.", "", ())
    over = Finding("KLP101", "leaderless", Severity.CRITICAL, "billing", "It was.", "", (), until=NOW)
    other = Finding("KLP101", "leaderless", Severity.CRITICAL, "audit", "It is.", "", ())
    assert _row(findings=(notice, warning, over, other)).worst is warning


def test_groups_in_zookeeper_are_shown_like_all_others() -> None:
    """Members, owners, offsets and lag; a state and a coordinator they do not have."""
    tree = ZooKeeperGroup(
        "billing",
        (Registration("billing_host-1"),),
        (OwnerNode("orders", 0, "billing_host-1-0"),),
        (StoredOffset("orders", 0, 100, NOW - SECOND), StoredOffset("orders", 1, 7)),
        NOW,
    )
    case = a_case(cluster=a_cluster(ends=[an_end(130)]), in_zookeeper=True, zookeeper=(tree,))
    (row,) = overview([case], ())
    assert (row.kind, row.state, row.members, row.coordinator) == (IN_ZOOKEEPER, "", 1, None)
    assert (row.lag, row.lag_is_whole, row.last_commit) == (30, False, NOW - SECOND)
    first, second = partitions_of(case)
    assert (first.member_id, first.lag, second.member_id, second.lag) == ("billing_host-1", 30, "", None)


def test_the_end_of_a_log_is_where_the_group_can_read_to() -> None:
    """A transaction is open from offset 56 on: with all before it read, nothing is left, and no gap shows."""
    cluster = a_cluster(ends=[an_end(120, stable=56)])
    case = a_case(cluster=cluster, committed=[a_committed(56)])
    (partition,) = partitions_of(case)
    assert (partition.offset, partition.end, partition.lag) == (56, 56, 0)
    assert (partition.high_watermark, partition.stable) == (120, 56)
