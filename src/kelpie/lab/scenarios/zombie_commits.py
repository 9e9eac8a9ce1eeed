"""A member was thrown out without knowing it, goes on working, and commits.

It hung for longer than its session, and others have its partitions by now.
When it wakes up, it finishes its batch, and commits. The coordinator refuses
that: it is no member any more. But the batch was processed twice.
"""

from kelpie.errors import ErrorCode
from kelpie.lab.scenarios.group_setup import RECORDS, SINCE_2_8, cluster_with, gather, new_members, settled
from kelpie.lab.scenarios.stage import Stage

NAME = "zombie-commits"
PERSONAS = SINCE_2_8
_GROUP = "payments"
_SESSION_MS = 600


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 6})
    timing = {"session_timeout_ms": _SESSION_MS, "heartbeat_interval_ms": 100}
    first, zombie = new_members(stage, cluster, _GROUP, 2, **timing)
    stage.step("Two members read and commit.")
    await gather(cluster, first, zombie)
    await stage.calm(cluster)

    stage.step("app-2 hangs in the middle of a batch; app-1 gets its partitions.")
    await zombie.hang()
    await cluster.wait_for_group(_GROUP, members=1)
    await settled(cluster, first)
    stage.step("app-2 wakes up, finishes the batch, and commits.")
    code = await zombie.commit(RECORDS - 5)
    stage.expect(
        code is ErrorCode.UNKNOWN_MEMBER_ID,
        f"refused: {code.name} ({code.value}); what app-1 committed stays",
    )
    await zombie.resume()
    await settled(cluster, first, zombie)
    await stage.incident(cluster, finds={"KLP204": [_GROUP], "KLP210": [_GROUP]}, needs_logs=True)
