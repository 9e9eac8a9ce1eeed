"""The coordinator is there, and cannot write.

It answers questions about the group, and its partition has a leader and all replicas
in sync. But whatever it appends is refused, as with a disk that has failed or replicas
that come and go: every commit is answered with COORDINATOR_NOT_AVAILABLE.
"""

import asyncio

from kelpie.errors import ErrorCode
from kelpie.lab.scenarios.group_setup import SINCE_2_8, cluster_with, gather, new_member
from kelpie.lab.scenarios.stage import Stage

NAME = "coordinator-cannot-write"
PERSONAS = SINCE_2_8
_GROUP = "billing"
_COMMITS = 5
_PAUSE_S = 15.0


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 1})
    member = new_member(stage, cluster, _GROUP, "app-1")
    stage.step("app-1 reads and commits.")
    await gather(cluster, member)
    await stage.calm(cluster, needs_logs=True)

    stage.step("The coordinator cannot append any more: it refuses every commit for a minute.")
    fault = cluster.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE, api="OffsetCommit")
    for _ in range(_COMMITS):
        code = await member.commit()
        stage.expect(code is not ErrorCode.NONE, "the commit does not come about")
        await asyncio.sleep(_PAUSE_S)
    await stage.incident(cluster, finds={"KLP109": [_GROUP]}, needs_logs=True)
    fault.lift()
