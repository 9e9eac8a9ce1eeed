"""A coordinator moves, and its successor takes its time to read the groups.

After an election the new leader of a partition of __consumer_offsets reads
all of it before it answers for the groups on it. Until then they hear error
14 (COORDINATOR_LOAD_IN_PROGRESS), and wait. Here it takes ten minutes, as it
does when a dead log cleaner has let the partition grow for months.
"""

from kelpie.errors import ErrorCode
from kelpie.lab.scenarios.client import RawClient
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.working_groups import lookup, two_groups
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

NAME = "coordinator-loading"
PERSONAS = ("4.3", "3.9", "2.8")
"""Kafka before 2.0 answers 16 while it loads."""

_LOAD_MS = 600_000


async def run(stage: Stage) -> None:
    groups = await two_groups(stage, 1, 3)
    cluster, waiting, members = groups.cluster, groups.first, groups.members

    stage.step("Whoever loads partition 0 from now on needs ten minutes. Broker 1 is stopped.")
    slow = cluster.slow_load(_LOAD_MS, partition=0)
    await cluster.stop(1)
    found = await stage.until(lambda: lookup(cluster, 2, waiting), lambda it: it.node_id in (2, 3))
    stage.expect(found.error_code == 0, f"{waiting}: its coordinator is now broker {found.node_id}")
    async with RawClient("scenario", f"{found.host}:{found.port}") as client:
        asked = OffsetFetchRequestTopic(name="orders", partition_indexes=[0])
        answer = await client.ask(OffsetFetchRequest(group_id=waiting, topics=[asked]), 2)
    stage.expect(
        answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        f"{waiting}: asked for its offsets, it answers {answer.error_code}",
    )
    await stage.incident(cluster, finds={"KLP102": [waiting]})

    stage.step("The log cleaner is mended; the next broker reads quickly.")
    slow.lift()
    await cluster.start(1)
    await cluster.stop(found.node_id)
    await members[waiting].until_joined()
    stage.expect(members[waiting].joined.is_set(), f"{waiting}: its member has joined again")
