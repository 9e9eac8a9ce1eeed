"""Names and patterns of groups."""

from kelpie.model.selection import ALL_GROUPS, Selection

KNOWN = ["billing-1", "billing-2", "audit", "a*", "Billing-3"]


def test_all_groups_unless_something_is_said() -> None:
    """The order is that of the cluster."""
    assert ALL_GROUPS.chosen(KNOWN) == KNOWN
    assert ALL_GROUPS.is_all
    assert not Selection(excluded=["audit"]).is_all


def test_patterns_choose_and_leave_out() -> None:
    """As in a shell: letters count as they are, and a group counts once."""
    assert Selection(["billing-*"]).chosen(KNOWN) == ["billing-1", "billing-2"]
    assert Selection(["audit", "billing-?", "billing-1"]).chosen(KNOWN) == ["audit", "billing-1", "billing-2"]
    assert Selection(excluded=["[bB]illing-*"]).chosen(KNOWN) == ["audit", "a*"]
    assert Selection(["billing-*"], ["*-2"]).chosen(KNOWN) == ["billing-1"]


def test_a_name_means_itself() -> None:
    """Even with signs of a pattern in it, and even if a pattern leaves it out."""
    assert Selection(["a*"]).chosen(KNOWN) == ["a*"]
    assert Selection(["audit"], ["*"]).chosen(KNOWN) == ["audit"]


def test_what_matches_nothing_is_not_lost() -> None:
    """The report then says that nobody knows it."""
    assert Selection(["nobody", "x-*"]).chosen(KNOWN) == ["nobody", "x-*"]
    assert Selection(["x-*"]).chosen([]) == ["x-*"]
