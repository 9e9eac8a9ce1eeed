"""A group has more members than its topic has partitions.

A partition is read by one member of a group at a time. Members beyond the
number of partitions get nothing: adding them does not make the group faster.
"""

from kelpie.lab.scenarios.group_setup import SINCE_2_8, cluster_with, gather, new_members, settled
from kelpie.lab.scenarios.stage import Stage

NAME = "idle-members"
PERSONAS = SINCE_2_8
_GROUP = "mailing"


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 2})
    first, second, third, fourth = members = new_members(stage, cluster, _GROUP, 4)
    stage.step("Two members read two partitions.")
    await gather(cluster, first, second)
    await stage.calm(cluster)

    stage.step("Two more are started, to make it faster.")
    third.start()
    fourth.start()
    await settled(cluster, *members)
    idle = [member.name for member in members if not member.assignment]
    stage.expect(len(idle) == 2, f"without a partition: {' and '.join(idle)}")
    await stage.incident(cluster, finds={"KLP207": [_GROUP]})
