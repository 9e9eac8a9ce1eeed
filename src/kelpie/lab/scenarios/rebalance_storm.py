"""A member is started and stopped again and again; the others never come to rest.

Whenever a member comes or goes, all members of the group stop, join anew and
wait until the last one has joined. One restart is nothing. A member that is
restarted every few seconds, by a scheduler that kills it or by a crash right
after its start, keeps the whole group from working.
"""

import asyncio

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.application import Application
from kelpie.lab.scenarios.group_setup import SINCE_2_8, cluster_with, gather, new_member, new_members, settled
from kelpie.lab.scenarios.stage import Stage

NAME = "rebalance-storm"
PERSONAS = SINCE_2_8
_GROUP = "checkout"
_RESTARTS = 6
_SESSION_MS = 600


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 6})
    first, second, third = new_members(stage, cluster, _GROUP, 3, session_timeout_ms=_SESSION_MS)
    stage.step("Three members join the group, one is restarted once: an ordinary day.")
    await gather(cluster, first, second, third)
    third = await _restart(stage, cluster, third)
    await settled(cluster, first, second, third)
    quiet = first.generation
    stage.say(f"The group is in generation {quiet}.")
    await stage.calm(cluster)

    stage.step(f"app-3 is restarted {_RESTARTS} times.")
    for _ in range(_RESTARTS):
        third = await _restart(stage, cluster, third)
        await third.until_joined()
    stage.expect(
        first.generation >= quiet + _RESTARTS,
        f"generation {first.generation}: {first.generation - quiet} rebalances",
    )
    storm = stage.actor(_restart_until_cancelled(stage, cluster, third))
    await stage.incident(cluster, finds={"KLP201": [_GROUP]})
    storm.cancel()


async def _restart_until_cancelled(stage: Stage, cluster: Cluster, third: Application) -> None:
    """Go on with the restarts while an observer examines the cluster."""
    try:
        while True:
            third = await _restart(stage, cluster, third)
            await third.until_joined()
            await asyncio.sleep(0.2)
    finally:
        await third.crash()


async def _restart(stage: Stage, cluster: Cluster, member: Application) -> Application:
    await member.close()
    return new_member(stage, cluster, _GROUP, member.name, session_timeout_ms=_SESSION_MS).start()
