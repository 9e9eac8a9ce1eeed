"""Named scenarios: those that are there, and what happens when they do not go as they should."""

import asyncio
import subprocess
import sys

import pytest

from kelpie.lab.scenarios import Stage, scenarios


def _played(name: str, persona: str) -> tuple[list[str], list[str]]:
    told: list[str] = []

    async def play() -> list[str]:
        async with Stage(persona, told.append) as stage:
            await scenarios()[name].run(stage)
        return stage.failures

    failures = asyncio.run(play())
    return failures, "\n".join(told).splitlines()


@pytest.mark.parametrize("persona", ["0.9", "2.8", "3.9", "4.3"])
def test_the_coordinator_outage_goes_as_it_did(persona: str) -> None:
    """Groups whose partition lost both replicas hear 15 and no address; the others go on."""
    failures, lines = _played("coordinator-outage", persona)
    assert failures == []
    assert sum("error_code=15, node_id=-1, host='', port=-1" in line for line in lines) == 2
    assert max(map(len, lines)) <= 80


def test_every_scenario_says_what_it_is() -> None:
    """One line first, and more below, for `kelpie lab list`."""
    for name, scenario in scenarios().items():
        assert scenario.name == name
        assert scenario.summary.endswith(".")
        assert max(map(len, scenario.description.splitlines())) <= 76
        assert scenario.personas


def test_what_did_not_happen_is_kept() -> None:
    """A scenario that fails says where."""

    async def play() -> Stage:
        async with Stage("4.3", lambda _: None, patience_s=0.1) as stage:
            stage.expect(True, "this is so")
            stage.expect(False, "this is not")

            async def look() -> int:
                return 1

            assert await stage.until(look, lambda seen: seen == 2) == 1
        return stage

    assert asyncio.run(play()).failures == ["this is not"]


def test_scenarios_are_listed_without_a_cluster() -> None:
    """Discovery imports files, and starts nothing."""
    code = "from kelpie.lab.scenarios import scenarios; print(*scenarios())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "coordinator-outage" in told.stdout.split()
