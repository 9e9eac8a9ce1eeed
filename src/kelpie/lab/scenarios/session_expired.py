"""A member falls silent, and the coordinator takes it for dead.

Nobody tells the coordinator that a process has died, or hangs: it notices when
no heartbeat has come for a whole session. All that time, the member's
partitions are read by nobody. A member that is closed says that it leaves, and
its partitions move at once.
"""

from kelpie.lab.scenarios.group_setup import SINCE_2_8, cluster_with, gather, new_members, settled
from kelpie.lab.scenarios.stage import Stage

NAME = "session-expired"
PERSONAS = SINCE_2_8
_GROUP = "shipping"
_SESSION_MS = 600


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 6})
    timing = {"session_timeout_ms": _SESSION_MS, "heartbeat_interval_ms": 100}
    first, second, leaver = new_members(stage, cluster, _GROUP, 3, **timing)
    stage.step("Three members read. One is closed: it leaves, and the others take over.")
    await gather(cluster, first, second, leaver)
    await leaver.close()
    await settled(cluster, first, second)
    await stage.calm(cluster)

    stage.step(f"app-2 hangs for longer than its session of {_SESSION_MS} ms.")
    await second.hang()
    await cluster.wait_for_group(_GROUP, members=1)
    stage.expect(True, "the coordinator has removed it")
    stage.step("app-2 goes on, hears that it is no member any more, and joins anew.")
    await second.resume()
    await cluster.wait_for_group(_GROUP, members=2)
    await settled(cluster, first, second)
    stage.expect(second.is_joined, "app-2 is back, under another id")
    await stage.incident(cluster, finds={"KLP204": [_GROUP]}, needs_logs=True)
