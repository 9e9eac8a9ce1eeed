"""Scenarios of the lab: `kelpie lab list`, `kelpie lab run`."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from kelpie.api.places import PathLike
from kelpie.lab.scenarios import Observer, Scenario, Stage
from kelpie.lab.scenarios import scenarios as all_scenarios
from kelpie.lab.scenarios.stage import WIDTH
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.suggestions import did_you_mean
from kelpie.real.zookeeper import RealZooKeeper


@dataclass(frozen=True, slots=True)
class Play:
    """What happened in a scenario."""

    scenario: Scenario
    persona: str
    told: tuple[str, ...]
    """Step by step."""
    failures: tuple[str, ...]
    """What should have happened and did not."""


def scenarios() -> dict[str, Scenario]:
    """All scenarios, by name."""
    return all_scenarios()


def scenario_named(name: str, persona: str | None = None) -> tuple[Scenario, str]:
    """The scenario, and the release that its brokers pass for. Raises KelpieError."""
    known = all_scenarios()
    scenario = known.get(name)
    if scenario is None:
        hint = did_you_mean(name, known)
        raise KelpieError(f"There is no scenario {name!r}. {hint}kelpie lab list shows all {len(known)}.")
    chosen = persona or scenario.personas[0]
    if chosen not in scenario.personas:
        raise KelpieError(
            f"{scenario.name} cannot be played with persona {chosen!r}; it can with "
            f"{', '.join(scenario.personas)}."
        )
    return scenario, chosen


async def play_scenario(
    name: str,
    *,
    persona: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
    observer: Observer | None = None,
    logs: PathLike | None = None,
    width: int = WIDTH,
) -> Play:
    """Plays a scenario on a cluster of its own. Some need a real ZooKeeper, and so Java.

    `persona`: the release that the brokers pass for. `tell` hears each step. `observer` is called, and waited
    for, when all is well and when the fault is there. `logs`: a folder for the logs of the brokers.
    Raises KelpieError.
    """
    scenario, chosen = scenario_named(name, persona)
    told: list[str] = []

    def hear(text: str) -> None:
        told.append(text)
        tell(text)

    async with AsyncExitStack() as opened:

        async def zookeeper() -> str:
            server = await asyncio.to_thread(RealZooKeeper().open)
            opened.push_async_callback(asyncio.to_thread, server.close)
            return server.connect

        folder = Path(logs) if logs is not None else None
        stage = Stage(chosen, hear, observer=observer, logs=folder, zookeeper=zookeeper, width=width)
        async with stage:
            await scenario.run(stage)
    return Play(scenario, chosen, tuple(told), tuple(stage.failures))
