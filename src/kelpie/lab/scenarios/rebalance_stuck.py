"""A member does not come to the rebalance, and everybody waits for it.

When a member joins, all others must join again, which a consumer does in its
next poll(). One whose application is busy still sends heartbeats, so that the
coordinator takes it for alive and waits: as long as max.poll.interval.ms
allows, 5 minutes by default. Until then nobody in the group reads anything.
"""

from kelpie.lab.scenarios.group_setup import SINCE_2_8, cluster_with, gather, new_members, settled
from kelpie.lab.scenarios.stage import Stage

NAME = "rebalance-stuck"
PERSONAS = SINCE_2_8
_GROUP = "reports"
_POLL_MS = 900_000
_SESSION_MS = 600


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 6})
    timing = {"session_timeout_ms": _SESSION_MS, "max_poll_interval_ms": _POLL_MS}
    first, second, third = new_members(stage, cluster, _GROUP, 3, **timing)
    stage.step("Two members read.")
    await gather(cluster, first, second)
    await stage.calm(cluster)

    stage.step("app-2 gets busy; its heartbeats go on. app-3 wants to join.")
    await second.stop_polling()
    third.start()
    await cluster.wait_for_group(_GROUP, "PreparingRebalance")
    stage.say("The group is in PreparingRebalance.")
    await stage.incident(cluster, finds={"KLP202": [_GROUP]}, seconds_of_history=3 * _SESSION_MS / 1000)
    stage.expect(not third.is_joined, "app-3 still waits for its assignment")

    stage.step("app-2 polls again.")
    await second.resume()
    await settled(cluster, first, second, third)
    stage.expect(len(third.assignment) == 2, f"app-3 has {len(third.assignment)} of 6 partitions")
