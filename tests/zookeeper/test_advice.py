"""Which settings to change: the rule, and the suggestions that follow from it."""

from kelpie.zookeeper.advice import outlasts, retries_needed, suggest, verdict
from kelpie.zookeeper.simulation.group import GroupSettings


def test_the_defaults_do_not_outlast_a_dead_session() -> None:
    """The folk rule, 4 × 2 s > 6 s, calls them safe; forced conflicts failed in 4 of 8 real runs."""
    assert not outlasts(GroupSettings())
    assert "span 6 s, but a killed member's session can stay for 8 s" in verdict(GroupSettings())


def test_the_suggested_retries_are_the_fewest_that_outlast_it() -> None:
    """One less does not."""
    needed = retries_needed(GroupSettings())
    assert needed == 6
    assert outlasts(GroupSettings(retries=needed))
    assert not outlasts(GroupSettings(retries=needed - 1))


def test_a_longer_session_comes_with_its_retries() -> None:
    """A longer session alone makes failures likelier."""
    longer = next(
        suggestion for suggestion in suggest(GroupSettings()) if suggestion.name == "longer session"
    )
    assert longer.changes == ("zookeeper.session.timeout.ms=30000", "rebalance.max.retries=18")
    assert outlasts(longer.settings)


def test_a_group_that_is_set_well_is_left_alone() -> None:
    """The healthy look-alike: nothing to suggest."""
    settings = GroupSettings(session_timeout_ms=30_000, retries=20, members=3)
    assert suggest(settings) == []
    assert "outlast a dead session" in verdict(settings)


def test_size_and_topics_are_named_only_where_they_are_many() -> None:
    """The document's other advice."""
    names = [suggestion.name for suggestion in suggest(GroupSettings(members=8, topics=3, retries=20))]
    assert names == ["longer session", "fewer consumers", "one topic per group"]
