"""A consumer asks for a session that is longer than the brokers allow.

group.max.session.timeout.ms is 10 s here (30 min by default). A consumer with
session.timeout.ms=60000 hears INVALID_SESSION_TIMEOUT (26), and ends with that.
"""

from kelpie.errors import ErrorCode
from kelpie.lab.scenarios.group_setup import SINCE_2_8, cluster_with, gather, new_member, settled
from kelpie.lab.scenarios.stage import Stage

NAME = "session-timeout-out-of-bounds"
PERSONAS = SINCE_2_8
_GROUP = "search"


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 4}, {"group.max.session.timeout.ms": 10_000})
    first = new_member(stage, cluster, _GROUP, "app-1")
    second = new_member(stage, cluster, _GROUP, "app-2", session_timeout_ms=60_000)
    stage.step("Sessions may last 10 s at most. app-1 asks for less, and reads.")
    await gather(cluster, first)
    await stage.calm(cluster, needs_logs=True)

    stage.step("app-2 asks for 60 s.")
    second.start()
    code = await second.until_refused()
    stage.expect(code is ErrorCode.INVALID_SESSION_TIMEOUT, f"app-2 is refused: {code and code.name}")
    await settled(cluster, first)
    await stage.incident(cluster, finds={"KLP213": [_GROUP]}, needs_logs=True)
