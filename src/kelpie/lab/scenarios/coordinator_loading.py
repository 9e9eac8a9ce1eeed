"""A coordinator moves, and its successor takes its time to read the groups.

After an election the new leader of a partition of __consumer_offsets reads
all of it before it answers for the groups on it. Until then they hear error
14 (COORDINATOR_LOAD_IN_PROGRESS), and wait. Here it takes ten minutes, as it
does when a dead log cleaner has let the partition grow for months.
"""

from kelpie.errors import ErrorCode
from kelpie.lab.scenarios.coordinated_groups import lookup, two_groups
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.questions.offset_fetch import AskCommitted

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
    successor = await stage.until(
        lambda: lookup(stage, cluster, 2, waiting), lambda answer: answer.node_id in (2, 3)
    )
    stage.expect(successor.error == 0, f"{waiting}: its coordinator is now broker {successor.node_id}")
    async with await stage.connect(f"{successor.host}:{successor.port}") as connection:
        offsets = await connection.put(AskCommitted(waiting, (TopicPartition("orders", 0),)))
    stage.expect(
        offsets.error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        f"{waiting}: asked for its offsets, it answers {offsets.error}",
    )
    await stage.incident(cluster, finds={"KLP102": [waiting]})

    stage.step("The log cleaner is mended; the next broker reads quickly.")
    slow.lift()
    await cluster.start(1)
    await cluster.stop(successor.node_id)
    await cluster.wait_for_group(waiting, members=1)
    member = members[waiting]
    is_back = await member.until(lambda: member.coordinator == 1 and member.is_joined)
    stage.expect(is_back, f"{waiting}: its member has joined again")
