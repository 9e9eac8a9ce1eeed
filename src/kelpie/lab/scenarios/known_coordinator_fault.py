"""A rebalance does not end, on a release that is known for it.

KAFKA-14422: brokers of 2.3 to 3.3.1 cannot tell the leader of a group about a static
member if that leader is a client before 2.3, and the rebalance never ends. Here a busy
member is what keeps it from ending. From outside both look the same, so the doctor
names the fault as something that may be there, and no more.
"""

from typing import Any

from kelpie.lab.scenarios.group_setup import cluster_with, gather, new_member, settled
from kelpie.lab.scenarios.stage import Stage

NAME = "known-coordinator-fault"
PERSONAS = ("2.8",)
_GROUP = "reports"
_POLL_MS = 900_000
_SESSION_MS = 600


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 6})
    timing: dict[str, Any] = {"session_timeout_ms": _SESSION_MS, "max_poll_interval_ms": _POLL_MS}
    first = new_member(stage, cluster, _GROUP, "app-1", group_instance_id="pod-1", **timing)
    second, third = (new_member(stage, cluster, _GROUP, name, **timing) for name in ("app-2", "app-3"))
    stage.step("Two members read; app-1 is a static member. The brokers are of release 2.8.")
    await gather(cluster, first, second)
    await stage.calm(cluster)

    stage.step("app-2 gets busy; its heartbeats go on. app-3 wants to join.")
    await second.stop_polling()
    third.start()
    await cluster.wait_for_group(_GROUP, "PreparingRebalance")
    await stage.incident(
        cluster,
        finds={"KLP202": [_GROUP], "KLP110": [_GROUP]},
        seconds_of_history=3 * _SESSION_MS / 1000,
    )

    stage.step("app-2 polls again.")
    await second.resume()
    await settled(cluster, first, second, third)
    stage.expect(third.is_joined, "the rebalance has ended")
