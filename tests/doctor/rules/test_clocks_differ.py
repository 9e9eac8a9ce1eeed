"""KLP316: the clock here and that of a broker differ. And what other rules make of it."""

from collections.abc import Sequence

import pytest

from kelpie.cluster.clocks import Skew
from kelpie.doctor.cases import build
from kelpie.doctor.finding import ABSENT, Finding, Severity
from kelpie.doctor.rules import stopped
from kelpie.doctor.rules.clocks_differ import judge
from kelpie.model.time import Instant
from kelpie.observations import BrokerView, ClockReading, Commit, Observations
from tests.doctor.building import (
    MINUTE,
    NOW,
    SECOND,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    a_view,
    an_answer,
    an_end,
    an_offsets_topic,
    commits,
    found,
    missing,
)


def _told(**skews: Skew) -> Sequence[Finding]:
    judged = judge(a_cluster(clocks={int(name[1:]): skew for name, skew in skews.items()}), [])
    assert isinstance(judged, Sequence)
    return judged


def test_a_proven_difference_is_told_once_for_all_brokers() -> None:
    """The end of the interval that is nearer to zero is what is proven."""
    (slow,) = _told(b1=Skew(90_000, None), b2=Skew(89_000, 91_000), b3=Skew(-1000, 1000))
    assert slow.severity is Severity.NOTICE
    assert slow.summary == "The clock of this machine is at least 89 s behind that of brokers 1 and 2."
    (fast,) = _told(b1=Skew(-95_000, -90_000))
    assert fast.summary == "The clock of this machine is at least 90 s ahead of that of broker 1."


def test_clocks_in_step_are_silent_and_unknown_ones_undetermined() -> None:
    """A few seconds are ordinary. Files alone have no clock to compare with."""
    assert judge(a_cluster(clocks={1: Skew(-4000, 4000)}), []) is ABSENT
    assert judge(a_cluster(), []) is ABSENT
    missing(judge(a_cluster(clocks={1: Skew()}), []))  # type: ignore[arg-type]


def _seen(rows: list[Commit], *clocks: ClockReading, looks: Sequence[Instant] = ()) -> Observations:
    """Of a look at `NOW`: group billing has a member, and records have waited all the time."""
    offset = rows[-1].offset
    return Observations(
        brokers=[BrokerView(node, f"kafka-{node}", 9092, alive=True, at=NOW) for node in (1, 2, 3)],
        partitions=[*an_offsets_topic(), a_view(0, 1, topic="orders")],
        clocks=list(clocks),
        answers=[an_answer(asked="OffsetFetch")],
        states=[a_state("Stable", a_member("app-1", 0))],
        commits=rows,
        committed=[a_committed(offset, at=at) for at in (*looks, NOW)],
        ends=[an_end(offset + 50, at=NOW - 30 * MINUTE), an_end(offset + 50)],
    )


def _judged(seen: Observations) -> object:
    (case,) = build(seen, now=NOW)[1]
    return stopped.judge(case)


def _busy(skew: int, until: Instant = NOW) -> list[Commit]:
    """A commit every 5 s, stamped by a broker whose clock is ahead by so much."""
    return commits(*((until + skew - 5 * SECOND * back, 1000 - back) for back in range(40, -1, -1)))


@pytest.mark.parametrize("skew", [90 * SECOND, -90 * SECOND])
def test_a_busy_group_is_never_stopped_and_a_stopped_one_is_found(skew: int) -> None:
    """The controllers tell the time, whatever the clock here says."""
    reading = ClockReading(1, NOW + skew, NOW - 10, NOW)
    assert _judged(_seen(_busy(skew), reading)) is ABSENT
    finding = _judged(_seen(_busy(skew, NOW - 5 * MINUTE), reading))
    assert isinstance(finding, Finding)
    assert "its last commit was 4.96 min ago" in finding.summary


def test_without_a_clock_to_compare_with_a_quiet_broker_leaves_it_open() -> None:
    """First look, clock here 90 s fast: the busy group is not called stopped. Later looks tell."""
    (what,) = missing(_judged(_seen(_busy(-90 * SECOND))))  # type: ignore[arg-type]
    assert what.startswith("whether the clock here is in step")
    stood = _seen(_busy(0, NOW - 10 * MINUTE), looks=[NOW - 5 * MINUTE])
    assert found(_judged(stood)).code == "KLP310"  # type: ignore[arg-type]
