"""Many seeded runs on a virtual clock: `kelpie simulate`."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace

from kelpie.attribution.plans import PLANS
from kelpie.attribution.simulation import trials as of_plans
from kelpie.attribution.simulation.scenarios import SCENARIOS
from kelpie.model.kelpie_error import KelpieError
from kelpie.zookeeper.simulation import trials as of_rebalances
from kelpie.zookeeper.simulation.events import EVENTS, GroupEvent
from kelpie.zookeeper.simulation.group import GroupSettings


def simulate_attribution(
    *,
    plans: Iterable[str] | None = None,
    scenarios: Iterable[str] | None = None,
    seeds: int = 200,
    first_seed: int = 0,
) -> list[of_plans.Trials]:
    """Plans that keep the group of every fetch, in scenarios; all of both if left out. Raises KelpieError."""
    return [
        plan_trials(scenario, plan, seeds, first_seed)
        for scenario in (SCENARIOS if scenarios is None else scenarios)
        for plan in (PLANS if plans is None else plans)
    ]


def plan_trials(scenario: str, plan: str, seeds: int, first_seed: int = 0) -> of_plans.Trials:
    """One plan in one scenario. Raises KelpieError."""
    _check("plan", plan, PLANS)
    _check("scenario", scenario, SCENARIOS)
    return of_plans.run_trials(PLANS[plan], SCENARIOS[scenario], _chances(seeds, first_seed))


def simulate_zookeeper_rebalance(
    settings: GroupSettings | None = None,
    *,
    members: Iterable[int] = (2, 4, 8),
    events: Iterable[str] = ("kill+join", "kill+leave", "restart-all"),
    seeds: int = 100,
    first_seed: int = 0,
) -> list[of_rebalances.Trials]:
    """Groups of Kafka 0.8's consumers: how often a rebalance fails. Raises KelpieError.

    An event that needs more members than a group has is left out for that group.
    """
    sizes = list(members)
    return [
        rebalance_trials(replace(settings or GroupSettings(), members=size), event, seeds, first_seed)
        for event in events
        for size in sizes
        if size >= _event(event).least_members
    ]


def rebalance_trials(
    settings: GroupSettings, event: str, seeds: int, first_seed: int = 0
) -> of_rebalances.Trials:
    """One event in one group. Raises KelpieError."""
    return of_rebalances.run_trials(settings, _event(event), _chances(seeds, first_seed))


def _event(name: str) -> GroupEvent:
    _check("event", name, EVENTS)
    return EVENTS[name]


def _check(kind: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise KelpieError(f"There is no {kind} {name!r}; choose {', '.join(known)}.")


def _chances(seeds: int, first: int) -> Iterator[random.Random]:
    if seeds < 1:
        raise KelpieError(f"{seeds} seeds: at least 1 is needed.")
    return (random.Random(seed) for seed in range(first, first + seeds))
