"""An application takes too long between two polls, and is out of the group.

The client itself watches how long ago poll() was called. After
max.poll.interval.ms it leaves the group on behalf of the application: heartbeats
alone do not prove that anybody works. The others take over its partitions, and
do again what it had not committed. When it polls again, it joins anew, and
everybody rebalances a second time.
"""

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.member import Member
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.troupe import SINCE_2_8, cluster_with, gather, settled

NAME = "slow-poll"
PERSONAS = SINCE_2_8
_GROUP = "invoices"
_POLL_MS = 700


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 6})
    first, slow, leaver = (_member(stage, cluster, name) for name in ("app-1", "app-2", "app-3"))
    stage.step(f"Three members read; poll() must come every {_POLL_MS} ms. One is closed, as it should be.")
    await gather(cluster, first, slow, leaver)
    await leaver.close()
    await settled(cluster, first, slow)
    await stage.calm(cluster)

    stage.step("app-2 works on a batch for too long; twice.")
    for _ in range(2):
        slow.polls = False
        await cluster.wait_for_group(_GROUP, members=1)
        stage.expect(not slow.joined.is_set(), "app-2 left the group, and app-1 has all partitions")
        slow.polls = True
        await settled(cluster, first, slow)
    stage.expect(slow.joined.is_set(), "app-2 is back")
    await stage.incident(cluster, finds={"KLP203": [_GROUP]}, needs_logs=True)


def _member(stage: Stage, cluster: Cluster, name: str) -> Member:
    return Member(stage, cluster, _GROUP, name, ["orders"], session_ms=1_000, poll_ms=_POLL_MS, beat_ms=100)
