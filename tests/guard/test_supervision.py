"""The life of a guarded process, in virtual time."""

import signal
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.guard.budget import HOUR_S, BackOff, RestartBudget
from kelpie.guard.sightings import Sighting
from kelpie.guard.supervision import (
    FAILED,
    Ending,
    Finish,
    Order,
    Pass,
    Phase,
    Policy,
    Say,
    Start,
    Supervision,
)
from kelpie.observations import EventKind as Kind

FATAL = Sighting(Kind.REBALANCE_FAILED, "gave up \x1b[2J", form="watcher")
TERM, KILL = Pass(signal.SIGTERM), Pass(signal.SIGKILL)
BY_TERM = Ending(signal=signal.SIGTERM)


def guard(**back_off: float) -> Supervision:
    policy = Policy(grace_s=30, back_off=BackOff(**{"first_s": 1, "longest_s": 60, **back_off}))  # type: ignore[arg-type]
    supervision = Supervision(policy, lambda: 1.0)
    assert supervision.begin(0.0) == [Start()]
    return supervision


def without_words(orders: list[Order]) -> list[Order]:
    return [order for order in orders if not isinstance(order, Say)]


def words(orders: list[Order]) -> str:
    (text,) = [order.text for order in orders if isinstance(order, Say)]
    return text


@pytest.mark.parametrize("ending", [Ending(0), Ending(3), Ending(signal=signal.SIGSEGV)])
def test_a_process_that_ends_by_itself_ends_the_guard_in_the_same_way(ending: Ending) -> None:
    """Whoever watches the guard must see what it would see without."""
    assert guard().exited(ending, group_is_empty=True, now=9) == [Finish(ending)]


def test_a_fatal_line_ends_the_process_and_starts_it_again_after_the_back_off() -> None:
    """And one line says what was seen and done, with nothing in it that drives a terminal."""
    supervision = guard()
    assert supervision.see(FATAL, 5) == [TERM]
    assert supervision.see(FATAL, 5.1) == []
    orders = supervision.exited(Ending(143), group_is_empty=True, now=5.5)
    assert without_words(orders) == []
    assert words(orders) == (
        'saw rebalance-failed (watcher): "gave up \\x1b[2J"; sent SIGTERM; the process ended with code 143, '
        "after 0.5 s; starts it again in 1.0 s (1 restart within the last hour, at most 20)"
    )
    assert supervision.deadline == 6.5
    assert supervision.tick(6.4) == []
    assert supervision.tick(6.5) == [Start()]


def test_a_process_that_ends_with_0_after_a_fatal_line_is_started_again() -> None:
    """Kafka 0.8's console consumer does so when it cannot rebalance at its start."""
    supervision = guard()
    supervision.see(FATAL, 5)
    supervision.exited(Ending(0), group_is_empty=True, now=5)
    assert supervision.phase is Phase.WAITING


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace_time() -> None:
    """A consumer that hangs does not close."""
    supervision = guard()
    supervision.see(FATAL, 5)
    assert supervision.tick(34.9) == []
    assert supervision.tick(35) == [KILL]
    orders = supervision.exited(Ending(signal=signal.SIGKILL), group_is_empty=True, now=35.1)
    assert "sent SIGTERM and, after 30 s, SIGKILL; the process ended by SIGKILL, after 30.1 s" in words(
        orders
    )
    assert supervision.counts.kills == 1


def test_a_restart_waits_for_what_is_left_of_the_group() -> None:
    """A child that lives on still has its partitions, or writes to the same files."""
    supervision = guard()
    supervision.see(FATAL, 5)
    assert supervision.exited(BY_TERM, group_is_empty=False, now=6) == []
    assert supervision.tick(35) == [KILL]
    assert without_words(supervision.group_emptied(35.1)) == []
    assert supervision.phase is Phase.WAITING


def test_what_a_process_leaves_behind_is_ended_before_the_guard_ends() -> None:
    """Nobody would read its output any more."""
    supervision = guard()
    assert supervision.exited(Ending(4), group_is_empty=False, now=6) == [TERM]
    assert supervision.group_emptied(7) == [Finish(Ending(4))]


def test_a_process_that_survives_sigkill_is_left_behind() -> None:
    """It hangs in the kernel; the guard must not hang with it."""
    supervision = guard()
    supervision.see(FATAL, 0)
    assert supervision.tick(30) == [KILL]
    assert supervision.tick(39) == []
    assert without_words(supervision.tick(40)) == []
    assert supervision.phase is Phase.WAITING


def test_signals_are_passed_on_and_sigterm_is_the_end() -> None:
    """SIGHUP and SIGQUIT mean "reload" and "dump your threads" to many; SIGTERM means what it says."""
    supervision = guard()
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        assert supervision.signal(number) == [Pass(number)]
    assert supervision.signal(signal.SIGTERM) == [TERM]
    assert supervision.see(FATAL, 6) == [], "it is ending already"
    assert supervision.exited(BY_TERM, group_is_empty=True, now=7) == [Finish(BY_TERM)]


def test_without_a_wish_to_end_other_signals_leave_the_guard_at_work() -> None:
    """The first fatal line after a reload counts."""
    supervision = guard()
    supervision.signal(signal.SIGHUP)
    assert supervision.see(FATAL, 6) == [TERM]


def test_sigterm_while_the_process_is_being_ended_ends_the_guard_too() -> None:
    """With the grace time that has begun."""
    supervision = guard()
    supervision.see(FATAL, 5)
    assert supervision.signal(signal.SIGTERM) == [TERM]
    assert supervision.tick(35) == [KILL]
    ending = Ending(signal=signal.SIGKILL)
    assert supervision.exited(ending, group_is_empty=True, now=36) == [Finish(ending)]


def test_sigterm_during_the_back_off_ends_the_guard_at_once() -> None:
    """There is no process to wait for. A signal that would not end a process is forgotten."""
    supervision = guard()
    supervision.see(FATAL, 5)
    supervision.exited(BY_TERM, group_is_empty=True, now=6)
    assert supervision.signal(signal.SIGUSR1) == []
    assert without_words(supervision.signal(signal.SIGTERM)) == [Finish(BY_TERM)]


@pytest.mark.parametrize(("ending", "end"), [(Ending(5), Ending(5)), (Ending(0), Ending(FAILED))])
def test_a_process_that_fails_again_and_again_is_given_up(ending: Ending, end: Ending) -> None:
    """With its own exit code; but a guard that gave up has not succeeded."""
    supervision = guard(per_hour=2)
    now = 0.0
    for _ in range(2):
        supervision.see(FATAL, now)
        supervision.exited(ending, group_is_empty=True, now=now)
        assert supervision.deadline is not None
        now = supervision.deadline
        assert supervision.tick(now) == [Start()]
    supervision.see(FATAL, now)
    orders = supervision.exited(ending, group_is_empty=True, now=now)
    assert words(orders).endswith("gave up after 2 restarts within an hour")
    assert without_words(orders) == [Finish(end)]
    assert supervision.counts.gave_up


def test_a_restart_that_fails_is_tried_again() -> None:
    """The program may be being replaced just now."""
    supervision = guard()
    supervision.see(FATAL, 5)
    supervision.exited(BY_TERM, group_is_empty=True, now=6)
    supervision.tick(7)
    assert "app cannot be started" in words(supervision.could_not_start("app cannot be started", 7))
    assert supervision.phase is Phase.WAITING


def test_the_back_off_doubles_and_begins_anew_after_a_long_run() -> None:
    """Half of it is left to chance: processes that failed together should not come back together."""
    budget = RestartBudget(BackOff(1, 10, 100))
    assert [budget.spend(5, float(now), 1) for now in range(6)] == [1, 2, 4, 8, 10, 10]
    assert budget.spend(5, 6, 0) == 5
    assert budget.spend(10_000, 7, 1) == 1


@given(st.lists(st.floats(0, 2000), max_size=60), st.integers(1, 5))
def test_no_hour_has_more_restarts_than_allowed(gaps: list[float], per_hour: int) -> None:
    """Whenever the failures come."""
    budget = RestartBudget(BackOff(1, 1, per_hour))
    now, restarts = 0.0, []
    for gap in gaps:
        now += gap
        if budget.spend(1, now, 1) is not None:
            restarts.append(now)
    for start in restarts:
        assert sum(start <= other < start + HOUR_S for other in restarts) <= per_hour


EVENTS = st.lists(
    st.tuples(st.sampled_from(["fatal", "exit", "left", "empty", "term", "hup", "time"]), st.floats(0, 50)),
    max_size=30,
)


@given(EVENTS)
def test_there_is_never_more_than_one_process(events: list[tuple[str, float]]) -> None:
    """Whatever happens in whichever order, as far as it can happen to a real process."""
    supervision = guard(per_hour=3)
    now, running, left = 0.0, True, False
    numbers = count()
    for event, gap in events:
        now += gap
        orders: list[Order] = []
        if event == "fatal" and running:
            orders = supervision.see(FATAL, now)
        elif event in ("exit", "left") and running:
            running, left = False, event == "left"
            orders = supervision.exited(Ending(next(numbers) % 3), group_is_empty=not left, now=now)
        elif event == "empty" and left:
            left = False
            orders = supervision.group_emptied(now)
        elif event in ("term", "hup") and supervision.phase is not Phase.DONE:
            orders = supervision.signal(signal.SIGTERM if event == "term" else signal.SIGHUP)
        elif event == "time":
            orders = supervision.tick(now)
        if KILL in orders:  # It always succeeds here.
            running, left = False, False
            orders = [*orders, *supervision.exited(Ending(signal=9), group_is_empty=True, now=now)]
        for order in orders:
            if isinstance(order, Start):
                assert not running
                assert not left
                running = True
            elif isinstance(order, Finish):
                assert not running
                return
            elif isinstance(order, Pass):
                assert running or left or order == KILL
