"""An application takes too long between two polls, and is out of the group.

The client itself watches how long ago poll() was called. After
max.poll.interval.ms it leaves the group on behalf of the application: heartbeats
alone do not prove that anybody works. The others take over its partitions, and
do again what it had not committed. When it polls again, it joins anew, and
everybody rebalances a second time.
"""

from kelpie.lab.scenarios.group_setup import SINCE_2_8, cluster_with, gather, new_members, settled
from kelpie.lab.scenarios.stage import Stage

NAME = "slow-poll"
PERSONAS = SINCE_2_8
_GROUP = "invoices"
_POLL_MS = 700


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 6})
    timing = {"max_poll_interval_ms": _POLL_MS, "heartbeat_interval_ms": 100}
    first, slow, leaver = new_members(stage, cluster, _GROUP, 3, **timing)
    stage.step(f"Three members read; poll() must come every {_POLL_MS} ms. One is closed, as it should be.")
    await gather(cluster, first, slow, leaver)
    await leaver.close()
    await settled(cluster, first, slow)
    await stage.calm(cluster)

    stage.step("app-2 works on a batch for too long; twice.")
    for _ in range(2):
        await slow.stop_polling()
        await cluster.wait_for_group(_GROUP, members=1)
        stage.expect(not slow.is_joined, "app-2 left the group, and app-1 has all partitions")
        await slow.resume()
        await settled(cluster, first, slow)
    stage.expect(slow.is_joined, "app-2 is back")
    await stage.incident(cluster, finds={"KLP203": [_GROUP]}, needs_logs=True)
