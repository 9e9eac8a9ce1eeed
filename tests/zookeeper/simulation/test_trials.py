"""The simulator agrees with what was counted on real Kafka 0.8.2.2, run by run and share by share."""

import random
from functools import cache

import pytest

from kelpie.model.shares import wilson
from kelpie.zookeeper.config import Behaviour
from kelpie.zookeeper.likelihood import Disturbance, failure_probability
from kelpie.zookeeper.simulation.events import EVENTS
from kelpie.zookeeper.simulation.group import GroupSettings
from kelpie.zookeeper.simulation.trials import Run, Trials, run_once

SEEDS = {2: 30, 4: 40, 8: 16}
"""Runs by number of members."""
STRICT = (30_000, 2, 500)
DEFAULT = (6_000, 4, 2_000)
REAL = [
    ("kill+join", 2, STRICT, 6, 6),
    ("kill+join", 4, STRICT, 4, 6),
    ("kill+join", 8, STRICT, 2, 5),
    ("kill+leave", 4, STRICT, 2, 8),
    ("kill+leave", 8, STRICT, 2, 6),
    ("restart-all", 4, STRICT, 1, 1),
    ("start-all", 2, STRICT, 0, 4),
    ("start-all", 4, STRICT, 0, 4),
    ("start-all", 8, STRICT, 0, 4),
    ("leave", 8, STRICT, 0, 3),
    ("kill", 4, DEFAULT, 0, 2),
    ("kill+leave", 4, DEFAULT, 1, 6),
    ("kill+join", 4, DEFAULT, 0, 4),
    ("restart-all", 4, DEFAULT, 0, 3),
    ("restart-all", 8, DEFAULT, 0, 2),
]
"""Event, members, (session, retries, back-off), runs of real 0.8.2.2 that failed, all runs; 8 partitions."""


@cache
def runs(
    event: str, members: int, timing: tuple[int, int, int], behaviour: Behaviour = Behaviour.FAITHFUL
) -> tuple[Run, ...]:
    seeds = SEEDS[members] if behaviour is Behaviour.FAITHFUL else 8
    session, retries, backoff = timing
    settings = GroupSettings(
        members=members,
        session_timeout_ms=session,
        retries=retries,
        backoff_ms=backoff,
        behaviour=behaviour,
    )
    return tuple(run_once(settings, EVENTS[event], random.Random(seed)) for seed in range(seeds))


def failed(of: tuple[Run, ...]) -> int:
    return sum(bool(run.failed) for run in of)


@pytest.mark.parametrize(("event", "members", "timing", "hits", "number"), REAL)
def test_failures_are_as_frequent_as_on_real_0_8_2_2(
    event: str, members: int, timing: tuple[int, int, int], hits: int, number: int
) -> None:
    """The simulated share lies in the 95 % interval of the real count."""
    share = wilson(hits, number)
    assert share.low <= failed(runs(event, members, timing)) / SEEDS[members] <= share.high


@pytest.mark.parametrize(
    ("event", "members"),
    [("kill+join", 2), ("kill+join", 4), ("kill+join", 8), ("kill+leave", 4), ("kill+leave", 8), ("kill", 4)],
)
def test_a_member_fails_exactly_if_its_new_range_meets_the_dead_ones_old_range(
    event: str, members: int
) -> None:
    """Right in 33 of 33 runs of real 0.8.2.2: with few retries the whole set of failing members is known."""
    for run in runs(event, members, STRICT if event != "kill" else DEFAULT):
        assert run.failed == run.predicted


def test_with_the_defaults_the_session_decides_when_it_ends() -> None:
    """Seen on 0.8.2.2: forced conflicts succeeded if it ended within 6.0 s, and failed from 6.2 s on."""
    conflicts = [run for run in runs("kill+leave", 4, DEFAULT) if run.predicted]
    assert conflicts
    for run in conflicts:
        assert run.expiry_ms is not None
        if run.failed:
            assert run.expiry_ms > 6_000
        else:
            assert run.expiry_ms < 6_700


def test_a_killed_members_session_of_6_s_ends_after_4_to_8_s() -> None:
    """Real ones took 4.5 to 7.3 s, 5.9 s on the average: pings and ticks are the same."""
    expiries = [run.expiry_ms for run in runs("kill", 4, DEFAULT) if run.expiry_ms is not None]
    assert len(expiries) == SEEDS[4]
    assert 4_000 <= min(expiries) <= 5_200
    assert 6_900 <= max(expiries) <= 8_000
    assert 5_500 <= sum(expiries) / SEEDS[4] <= 6_500


@pytest.mark.parametrize("event", ["kill+join", "kill+leave", "restart-all", "rolling", "zookeeper-pause"])
def test_recovering_members_end_with_their_share(event: str) -> None:
    """Their rebalances fail too, while a dead session is in the way; they are back without help."""
    for run in runs(event, 4, STRICT, Behaviour.RECOVERING):
        assert run.idle == 0
        assert run.unread_ms is not None


def test_0_8_does_not_come_back_when_all_were_killed_and_started() -> None:
    """Each start fails, and the processes end: the healthy look-alike is the recovering group above."""
    for run in runs("restart-all", 4, STRICT):
        assert (len(run.failed), run.idle, run.unread_ms) == (4, 4, None)


@pytest.mark.parametrize("event", list(Disturbance))
@pytest.mark.parametrize(("members", "timing"), [(4, STRICT), (8, STRICT), (4, DEFAULT)])
def test_the_closed_form_agrees_with_the_simulator(
    event: Disturbance, members: int, timing: tuple[int, int, int]
) -> None:
    """The doctor uses it instead of thousands of runs."""
    session, retries, backoff = timing
    expected = failure_probability(
        event,
        members=members,
        partitions=8,
        retries=retries,
        backoff_ms=backoff,
        session_timeout_ms=session,
    )
    share = wilson(failed(runs(event.value, members, timing)), SEEDS[members])
    assert share.low - 0.08 <= expected <= share.high + 0.08


def test_quantiles_of_the_time_without_readers_count_groups_that_never_recovered() -> None:
    """A median over the lucky ones only would be a lie."""
    trials = Trials(GroupSettings(), "kill")
    for unread in (100, None, 300, None):
        trials.add(Run(frozenset(), frozenset(), 0, unread, None))
    assert trials.unread_quantile(0.25) == 100
    assert trials.unread_quantile(0.5) == 300
    assert trials.unread_quantile(0.95) is None
