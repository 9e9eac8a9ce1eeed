"""Two processes use the same group.instance.id, and throw each other out.

A static member keeps its place when it restarts: who comes with its
group.instance.id takes over, without a rebalance. The coordinator cannot know
whether the one before is gone or still alive. If it is alive, it is fenced
(error 82), and a consumer ends with that. Where something starts it again, it
fences the second one in turn, and so on.
"""

import asyncio

from kelpie.errors import ErrorCode
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.application import Application
from kelpie.lab.scenarios.group_setup import SINCE_2_8, cluster_with, gather, new_member, settled
from kelpie.lab.scenarios.stage import Stage

NAME = "static-member-fenced"
PERSONAS = SINCE_2_8
_GROUP = "pricing"
_INSTANCE = "pricing-0"
_FIGHTS = 4


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 6})
    other = _member(stage, cluster, "app-1", "pricing-1")
    owner = _member(stage, cluster, "app-0", _INSTANCE)
    stage.step("Two static members read. One is restarted, and takes its place again.")
    await gather(cluster, other, owner)
    generation = other.generation
    await owner.crash()
    owner = _member(stage, cluster, "app-0", _INSTANCE).start()
    await settled(cluster, other, owner)
    stage.expect(other.generation == generation, f"still generation {generation}: nobody had to rebalance")
    await stage.calm(cluster)

    stage.step(
        f"A second process starts with group.instance.id={_INSTANCE}; both are started again when they end."
    )
    fight = stage.actor(_fight(stage, cluster, owner))
    fenced = await owner.until_refused()
    stage.expect(fenced is ErrorCode.FENCED_INSTANCE_ID, f"app-0 was fenced: {fenced and fenced.value}")
    await stage.until(lambda: _fights(stage), lambda number: number >= _FIGHTS)
    await stage.incident(cluster, finds={"KLP205": [_GROUP]})
    fight.cancel()


async def _fight(stage: Stage, cluster: Cluster, owner: Application) -> None:
    """Restart each process that is fenced."""
    fighters = [owner, _member(stage, cluster, "app-0b", _INSTANCE)]
    fighters[1].start()
    try:
        while True:
            await asyncio.sleep(0.05)
            for at, fighter in enumerate(fighters):
                if fighter.refused is not None:
                    await fighter.crash()
                    fighters[at] = _member(stage, cluster, fighter.name, _INSTANCE)
                    fighters[at].start()
    finally:
        for fighter in fighters:
            await fighter.crash()


async def _fights(stage: Stage) -> int:
    return sum(path.read_text().count("fenced") for path in stage.logs.glob("app-0*.log"))


def _member(stage: Stage, cluster: Cluster, name: str, instance: str) -> Application:
    return new_member(
        stage,
        cluster,
        _GROUP,
        name,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=100,
        group_instance_id=instance,
    )
