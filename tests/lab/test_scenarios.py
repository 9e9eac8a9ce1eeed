"""Named scenarios: those that are there, and what happens when they do not go as they should."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from kelpie.lab import virtual_time
from kelpie.lab.scenarios import Environment, Moment, Stage, scenarios


def _played(name: str, persona: str) -> tuple[list[str], list[str]]:
    told: list[str] = []

    async def play() -> list[str]:
        async with Stage(persona, told.append, environment=Environment.virtual()) as stage:
            await scenarios()[name].run(stage)
        return stage.failures

    failures = virtual_time.run(play())
    return failures, "\n".join(told).splitlines()


@pytest.mark.parametrize("persona", ["0.9", "2.8", "3.9", "4.3"])
def test_the_coordinator_outage_goes_as_it_did(persona: str) -> None:
    """Groups whose partition lost both replicas hear 15 and no address; the others go on."""
    failures, lines = _played("coordinator-outage", persona)
    assert failures == []
    assert sum("error_code=15, node_id=-1, host='', port=-1" in line for line in lines) == 2
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(("name", "persona"), [("slow-poll", "2.8"), ("static-member-fenced", "3.9")])
def test_older_personas_can_be_played_with(name: str, persona: str) -> None:
    """Members speak the versions of the release."""
    assert _played(name, persona)[0] == []


def test_a_scenario_takes_the_same_course_every_time(tmp_path: Path) -> None:
    """On the virtual clock: the same ids, and every line of every log at the same time."""

    async def play(logs: Path) -> None:
        environment = Environment.virtual()
        async with Stage("4.3", lambda _: None, logs=logs, environment=environment) as stage:
            await scenarios()["session-expired"].run(stage)

    for run in ("first", "second"):
        virtual_time.run(play(tmp_path / run))
    first, second = (
        {path.name: path.read_text() for path in (tmp_path / run).iterdir()} for run in ("first", "second")
    )
    assert first == second
    assert any("has left group" in text or "failed" in text for text in first.values())


def test_every_scenario_says_what_it_is() -> None:
    """One line first, and more below, for `kelpie lab list`."""
    for name, scenario in scenarios().items():
        assert scenario.name == name
        assert scenario.summary.endswith(".")
        assert "\n\n" in scenario.description
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


def test_moments_are_shown_to_the_observer(tmp_path: Path) -> None:
    """It sees the cluster as it is then, with the logs, and what should be found."""
    seen: list[tuple[bool, dict[str, list[str]], int]] = []

    async def look(moment: Moment) -> None:
        log = (moment.logs / "broker-1.log").read_text()
        finds = {code: list(groups) for code, groups in moment.finds.items()}
        seen.append((moment.is_calm, finds, log.count("started")))

    async def play() -> None:
        async with Stage("2.8", lambda _: None, observer=look, logs=tmp_path / "logs") as stage:
            cluster = await stage.cluster(1)
            await stage.calm(cluster)
            await stage.incident(cluster, {"KLP101": ["billing"]}, needs_logs=True)

    asyncio.run(play())
    assert seen == [(True, {}, 1), (False, {"KLP101": ["billing"]}, 1)]


def test_logs_are_gone_with_the_stage() -> None:
    """Unless somebody wants to keep them."""

    async def play() -> Path:
        async with Stage("4.3", lambda _: None) as stage:
            await stage.cluster(1)
            assert (stage.logs / "broker-1.log").exists()
            return stage.logs

    assert not asyncio.run(play()).exists()


def test_an_actor_that_fails_fails_the_scenario() -> None:
    """One that is still playing at the end is sent home."""
    ended: list[str] = []

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("sent home")

    async def stumbles() -> None:
        raise ValueError("stumbled")

    async def play() -> None:
        async with Stage("4.3", lambda _: None) as stage:
            stage.actor(for_ever())
            await asyncio.wait([stage.actor(stumbles())])

    with pytest.raises(ValueError, match="stumbled"):
        asyncio.run(play())
    assert ended == ["sent home"]


def test_scenarios_are_listed_without_a_cluster() -> None:
    """Discovery imports files, and starts nothing."""
    code = "from kelpie.lab.scenarios import scenarios; print(*scenarios())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "coordinator-outage" in told.stdout.split()
