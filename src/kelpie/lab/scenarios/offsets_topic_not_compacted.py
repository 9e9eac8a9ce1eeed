"""The offsets topic is not compacted.

Somebody has set cleanup.policy=delete for __consumer_offsets. Nothing happens at first. Offsets disappear
when they are older than retention.ms, and until then every commit is kept and read by the next coordinator.
"""

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.group_setup import cluster_with, gather, new_member
from kelpie.lab.scenarios.stage import Stage

NAME = "offsets-topic-not-compacted"
PERSONAS = ("4.3", "3.9", "2.8")
_GROUP = "billing"


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 2})
    member = new_member(stage, cluster, _GROUP, "app-1")
    await gather(cluster, member)
    await stage.calm(cluster)

    stage.step("Somebody sets cleanup.policy=delete for __consumer_offsets.")
    await administering.alter_topic(stage, cluster, "__consumer_offsets", {"cleanup.policy": "delete"})
    await stage.incident(cluster, finds={"KLP108": []})

    stage.step("Somebody sets it back.")
    await administering.alter_topic(stage, cluster, "__consumer_offsets", {"cleanup.policy": "compact"})
    await stage.calm(cluster)
