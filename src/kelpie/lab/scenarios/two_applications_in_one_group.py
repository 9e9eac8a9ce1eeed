"""Two applications have the same group.id.

Somebody copied a configuration: the application for payments joins the group of the
one for orders. Both read their topics, but each rebalance of one stops the other.
"""

from typing import Any

from kelpie.lab.scenarios.group_setup import SINCE_2_8, cluster_with, gather, new_member, settled
from kelpie.lab.scenarios.stage import Stage

NAME = "two-applications-in-one-group"
PERSONAS = SINCE_2_8
_GROUP = "shop"
_LONG_S = 400.0
_CALM: dict[str, Any] = {
    "session_timeout_ms": 10_000,
    "heartbeat_interval_ms": 1_000,
    "max_poll_interval_ms": 3_600_000,
}


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 2, "payments": 2})
    orders = new_member(stage, cluster, _GROUP, "billing-1", ["orders"], **_CALM)
    payments = new_member(stage, cluster, _GROUP, "refunds-1", ["payments"], **_CALM)
    stage.step(f"billing-1 reads orders as group {_GROUP}.")
    await gather(cluster, orders)
    await stage.calm(cluster)

    stage.step(f"refunds-1 reads payments, as group {_GROUP} too.")
    payments.start()
    await settled(cluster, orders, payments)
    topics = [{name.topic for name in member.assignment} for member in (orders, payments)]
    stage.expect(topics == [{"orders"}, {"payments"}], f"they have partitions of {topics}")
    for member in (orders, payments):
        await member.stop_polling()  # Nothing more comes in.
    await stage.incident(cluster, finds={"KLP212": [_GROUP]}, seconds_of_history=_LONG_S)
