"""Rounds of a collector, for tests: as many as wanted, as fast as they go."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kelpie.client.settings import Settings
from kelpie.client.survey import wall_clock
from kelpie.collect.collecting import Collector, CollectPlan, Round
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import Diagnosis, diagnose_all
from kelpie.evidence import read_evidence

LIMIT_S = 60.0


def settings_of(bootstrap: str) -> Settings:
    return Settings.of(bootstrap, request_timeout_s=30.0, connect_timeout_s=30.0)


def collect(
    folder: Path,
    bootstrap: str | None,
    rounds: int = 1,
    *,
    every_s: float = 0.05,
    clock: Callable[[], int] = wall_clock,
    after: Callable[[Round], None] = lambda _: None,
    **options: Any,
) -> list[Round]:
    """So many rounds. `after` is called when one is over."""
    told: list[Round] = []

    async def run() -> None:
        stop = asyncio.Event()

        def tell(done: Round) -> None:
            told.append(done)
            after(done)
            if len(told) >= rounds:
                stop.set()

        settings = settings_of(bootstrap) if bootstrap is not None else None
        plan = CollectPlan(folder, settings, every_s=every_s, **options)
        async with asyncio.timeout(LIMIT_S):
            await Collector(plan, tell, clock).run(stop)

    asyncio.run(run())
    return told


def snapshots(folder: Path) -> list[Path]:
    return sorted(folder.glob("survey-*"))


def diagnosed(folder: Path) -> Diagnosis:
    return diagnose_all(*build(read_evidence([folder])))
