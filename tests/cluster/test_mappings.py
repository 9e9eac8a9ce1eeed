"""Listings of the mapping tree, one after another."""

from tests.doctor.building import NOW
from tests.doctor.rules.kop import a_listing, kop

A, B = {"10.0.0.7-a": "first"}, {"10.0.0.8-b": "second"}


def test_a_node_that_goes_while_others_stay_has_vanished() -> None:
    """All at once is the end of all consumers; one that comes back was written anew."""
    assert [each.node.group for each in kop(a_listing(A | B), a_listing(B)).mapping_history.vanished] == [
        "first"
    ]
    assert not list(kop(a_listing(A | B), a_listing({})).mapping_history.vanished)
    assert not list(kop(a_listing(A | B), a_listing(B), a_listing(A | B)).mapping_history.vanished)


def test_a_node_that_names_another_group_was_overwritten() -> None:
    """Both writers are known."""
    (change,) = kop(a_listing(A), a_listing({"10.0.0.7-a": "second"})).mapping_history.overwritten
    assert (change.before.group, change.after.group) == ("first", "second")


def test_with_times_the_nearest_listing_counts_and_without_them_any() -> None:
    """What has no time may have been listed before or after."""
    path = "/client_group_id/10.0.0.7-a"
    untimed = kop(a_listing(A), a_listing({})).mapping_history
    assert untimed.node(path, NOW) is not None
    timed = kop(a_listing(A, at=NOW - 100), a_listing({}, at=NOW)).mapping_history
    assert timed.node(path, NOW) is None
    assert timed.node(path, NOW - 90) is not None


def test_how_long_a_node_stands_unchanged() -> None:
    """A new version is a new write."""
    history = kop(a_listing(A, version=1), a_listing(A), a_listing(A)).mapping_history
    assert history.unchanged(history.standing["/client_group_id/10.0.0.7-a"]) == 2
