"""Which of several claims about a committed offset is believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.model.names import TopicPartition
from kelpie.observations import Commit, Committed
from kelpie.observations.positions import NO_OFFSET
from kelpie.repair.claims import (
    Certainty,
    Claim,
    ClaimKind,
    CopyRead,
    of_copies,
    of_surveys,
    place_in_copy,
    settle,
)

ORDERS = TopicPartition("orders", 0)
DISK_2 = "disks/broker-2/__consumer_offsets-25/00000000000000000000.log@{}"
DISK_3 = "disks/broker-3/__consumer_offsets-25/00000000000000000000.log@{}"


def a_commit(offset: int, at: int | None, source: str, group: str = "billing") -> Commit:
    return Commit(group, *ORDERS, offset, at, source=source)


def test_the_newest_commit_of_all_copies_wins() -> None:
    """A follower that lagged when it died has only an older one."""
    claims = of_copies(
        [
            a_commit(7, 100, DISK_2.format(1)),
            a_commit(9, 200, DISK_2.format(2)),
            a_commit(7, 100, DISK_3.format(1)),
        ],
        "billing",
    )
    standing = settle(claims, [CopyRead("2", 3), CopyRead("3", 2)])[ORDERS]
    assert (standing.offset, standing.certainty, standing.why) == (
        9,
        Certainty.LIKELY,
        "the newest in 2 copies",
    )
    assert "broker-2" in standing.claim.source


def test_a_rewind_is_newer_than_the_higher_offset_before_it() -> None:
    """Newest is by the log, not by the number."""
    rows = [a_commit(900, 100, DISK_2.format(1)), a_commit(5, 200, DISK_2.format(2))]
    assert settle(of_copies(rows, "billing"))[ORDERS].offset == 5


def test_within_a_copy_the_order_of_the_log_counts_and_not_the_clock() -> None:
    """A coordinator on a host whose clock is behind still comes later."""
    rows = [a_commit(5, 900, DISK_2.format(1)), a_commit(6, 300, DISK_2.format(2))]
    assert settle(of_copies(rows, "billing"))[ORDERS].offset == 6


def test_a_tombstone_without_a_time_removes_what_came_before_it() -> None:
    """Messages of Kafka 0.9 have no timestamps; the removal must not lose against its own commit."""
    rows = [
        a_commit(5, 100, DISK_3.format(1)),
        a_commit(5, 100, DISK_2.format(1)),
        a_commit(NO_OFFSET, None, DISK_2.format(2)),
    ]
    standings = settle(of_copies(rows, "billing"))
    assert standings[ORDERS].claim.removed
    assert all(standing.claim.removed for standing in standings.values())


def test_copies_that_agree_and_all_copies_are_told_apart() -> None:
    """With every replica read there cannot be a newer commit anywhere."""
    claims = of_copies([a_commit(9, 200, DISK_2.format(2))], "billing")
    assert settle(claims, [CopyRead("2", 3)])[ORDERS].why == "the newest in the one copy that was read"
    both = [CopyRead("2", 3), CopyRead("3", 3)]
    assert settle(claims, both)[ORDERS].why == "2 copies have it, and none has a newer one"
    assert settle(claims, both, replicas=3)[ORDERS].certainty is Certainty.LIKELY
    assert settle(claims, both, replicas=2)[ORDERS].certainty is Certainty.CERTAIN


def test_the_coordinator_is_believed_before_any_copy() -> None:
    """It answers from the same log, and knows what was committed since the copy was made."""
    claims = [
        *of_copies([a_commit(9, 10**15, DISK_2.format(2))], "billing"),
        Claim(ORDERS, 8, "broker 1", kind=ClaimKind.COORDINATOR),
    ]
    standing = settle(claims)[ORDERS]
    assert (standing.offset, standing.certainty) == (8, Certainty.CERTAIN)


@pytest.mark.parametrize(("survey_at", "seen"), [(100, 12), (300, 12), (100, 4), (300, 4)])
def test_the_lower_of_a_copy_and_a_survey_is_taken_whatever_their_clocks_say(
    survey_at: int, seen: int
) -> None:
    """The times are of two clocks. To read records again is safe, to skip some is not; both are told."""
    copies = of_copies([a_commit(9, 200, DISK_2.format(2))], "billing")
    survey = of_surveys([Committed("billing", *ORDERS, seen, at=survey_at, source="a survey")], "billing")
    standing = settle([*copies, *survey])[ORDERS]
    assert (standing.offset, standing.certainty) == (min(seen, 9), Certainty.DATED)
    assert f"says {seen}" in standing.why
    assert "says 9" in standing.why


def test_a_copy_that_holds_the_offset_of_the_survey_too_is_newer() -> None:
    """The order of its log says so, without any clock; else every survey would set groups back."""
    rows = [a_commit(4, 900, DISK_2.format(1)), a_commit(9, 950, DISK_2.format(2))]
    survey = of_surveys([Committed("billing", *ORDERS, 4, at=10**13, source="a survey")], "billing")
    standing = settle([*of_copies(rows, "billing"), *survey])[ORDERS]
    assert (standing.offset, standing.certainty) == (9, Certainty.LIKELY)


def test_copies_that_were_all_read_know_more_than_a_survey() -> None:
    """What a coordinator answered was in one of them."""
    copies = of_copies([a_commit(9, 200, DISK_2.format(2))], "billing")
    survey = of_surveys([Committed("billing", *ORDERS, 4, at=300, source="a survey")], "billing")
    standing = settle([*copies, *survey], [CopyRead("2", 3)], replicas=1)[ORDERS]
    assert (standing.offset, standing.certainty) == (9, Certainty.CERTAIN)


def test_an_offset_that_was_removed_and_seen_is_told() -> None:
    """Only clocks could say which came last: a place is better than none, and a person decides."""
    copies = of_copies([a_commit(NO_OFFSET, 200, DISK_2.format(2))], "billing")
    survey = of_surveys([Committed("billing", *ORDERS, 4, at=100, source="a survey")], "billing")
    standing = settle([*copies, *survey])[ORDERS]
    assert (standing.offset, standing.certainty) == (4, Certainty.DATED)
    assert "was removed" in standing.why


def test_answers_without_an_offset_are_no_claims() -> None:
    """A coordinator that was loading has said nothing about the group."""
    rows = [Committed("billing", *ORDERS, NO_OFFSET), Committed("billing", *ORDERS, 3, error=14)]
    assert of_surveys(rows, "billing") == []


def test_other_groups_of_the_partition_do_not_count() -> None:
    """Many groups share a partition of the offsets topic."""
    assert of_copies([a_commit(9, 200, DISK_2.format(2), group="other")], "billing") == []


def test_a_copy_is_a_folder_of_segments() -> None:
    """Segments of one folder follow each other; the same partition of another broker is another copy."""
    assert place_in_copy(DISK_2.format(7)) == ("disks/broker-2/__consumer_offsets-25", 7)
    assert place_in_copy("broker 1 (h:1)@7") == ("broker 1 (h:1)", 7)
    assert place_in_copy("a table") == ("a table", -1)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 50),
            st.integers(0, 20),
            st.sampled_from(["a", "b", ""]),
            st.sampled_from(ClaimKind),
        ),
        min_size=1,
    )
)
def test_no_claim_beats_the_winner(made: list[tuple[int, int, str, ClaimKind]]) -> None:
    """By kind first, then by time among claims of one clock; of two clocks the lower offset."""
    claims = [Claim(ORDERS, offset, "s", at, kind, copy) for offset, at, copy, kind in made]
    best = settle(claims)[ORDERS].claim
    assert all(it.kind <= best.kind for it in claims)
    rivals = [it for it in claims if it.kind is best.kind]
    of_its_clock = [it for it in rivals if bool(it.copy) == bool(best.copy)]
    assert all((it.at or 0) <= (best.at or 0) for it in of_its_clock)
    others = [it for it in rivals if bool(it.copy) != bool(best.copy)]
    if others:
        latest = max(it.at or 0 for it in others)
        assert any(it.offset >= best.offset for it in others if it.at == latest)
