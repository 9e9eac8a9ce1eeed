"""The scenarios with a real ZooKeeper: the doctor, which asks it twice, finds each fault and nothing else.

They run in real time and wait most of it, so all run at once, each below a node of its own.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from kelpie.lab.scenarios import scenarios
from kelpie.real.zookeeper import RealZooKeeper
from tests.client.zookeeper_client import kazoo_client
from tests.doctor.test_scenarios import Play

pytestmark = pytest.mark.real
NAMES = sorted(name for name, scenario in scenarios().items() if scenario.needs_zookeeper)
Played = dict[str, tuple[Play, list[str] | BaseException]]


@pytest.fixture(scope="module")
def played(
    available: Callable[[], AbstractContextManager[None]], tmp_path_factory: pytest.TempPathFactory
) -> Played:
    """Each scenario, and what it expected and did not see."""
    with available(), RealZooKeeper() as server:
        with kazoo_client(server.connect) as client:
            for name in NAMES:
                client.create(f"/{name}")
        plays = [Play(name, tmp_path_factory.mktemp(name), f"{server.connect}/{name}") for name in NAMES]

        async def play_all() -> list[list[str] | BaseException]:
            async with asyncio.timeout(300):
                return await asyncio.gather(*(play.run() for play in plays), return_exceptions=True)

        results = asyncio.run(play_all())
    return {name: (play, result) for name, play, result in zip(NAMES, plays, results, strict=True)}


@pytest.mark.parametrize("name", NAMES)
def test_the_doctor_finds_what_a_scenario_shows_and_nothing_else(name: str, played: Played) -> None:
    """With the tree of a living ZooKeeper, the lab's brokers, and logs where the scenario needs them."""
    play, result = played[name]
    if isinstance(result, BaseException):
        raise result
    play.judge(result)


def test_each_rule_about_groups_of_zookeeper_has_one() -> None:
    """KLP501 to KLP508."""
    assert len(NAMES) == 8
