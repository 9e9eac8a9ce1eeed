"""A group is as large as the brokers allow, and refuses the next member.

group.max.size keeps a client that starts consumers without end from drowning
the coordinator. Who comes too late hears GROUP_MAX_SIZE_REACHED (81), and a
consumer ends with that.
"""

from kelpie.errors import ErrorCode
from kelpie.lab.scenarios.group_setup import SINCE_2_8, cluster_with, gather, new_members, settled
from kelpie.lab.scenarios.stage import Stage

NAME = "group-full"
PERSONAS = SINCE_2_8
_GROUP = "search"
_LIMIT = 2


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 6}, {"group.max.size": _LIMIT})
    first, second, third = new_members(stage, cluster, _GROUP, 3)
    stage.step(f"group.max.size is {_LIMIT}. One member reads.")
    await gather(cluster, first)
    await stage.calm(cluster)

    stage.step("A second one joins, and a third one wants to.")
    second.start()
    await settled(cluster, first, second)
    third.start()
    code = await third.until_refused()
    stage.expect(code is ErrorCode.GROUP_MAX_SIZE_REACHED, f"app-3 is refused: {code and code.name}")
    await settled(cluster, first, second)
    await stage.incident(cluster, finds={"KLP209": [_GROUP]})
