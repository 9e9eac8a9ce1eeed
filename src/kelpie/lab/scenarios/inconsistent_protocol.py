"""A new member has no assignor in common with the others, and is refused.

All members of a group must agree on an assignor. One that offers none of those
that all the others know hears INCONSISTENT_GROUP_PROTOCOL (23), and ends. So a
rolling change of partition.assignment.strategy in one step shuts out every new
member until the last old one is gone.
"""

from kelpie.errors import ErrorCode
from kelpie.lab.scenarios.group_setup import SINCE_2_8, cluster_with, gather, new_member, settled
from kelpie.lab.scenarios.stage import Stage

NAME = "inconsistent-protocol"
PERSONAS = SINCE_2_8
_GROUP = "catalogue"


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 6})
    old = new_member(stage, cluster, _GROUP, "app-1", assignors=["range"])
    both = new_member(stage, cluster, _GROUP, "app-2", assignors=["roundrobin", "range"])
    new = new_member(stage, cluster, _GROUP, "app-3", assignors=["roundrobin"])
    stage.step("app-1 offers range, app-2 both roundrobin and range: they agree on range.")
    await gather(cluster, old, both)
    await stage.calm(cluster)

    stage.step("app-3 offers nothing but roundrobin.")
    new.start()
    code = await new.until_refused()
    stage.expect(code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"app-3 is refused: {code and code.name}")
    await settled(cluster, old, both)
    await stage.incident(cluster, finds={"KLP206": [_GROUP]}, needs_logs=True)
