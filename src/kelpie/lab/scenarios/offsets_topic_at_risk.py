"""Every group is well, and one more broken disk would stop some of them.

Replicas of __consumer_offsets have fallen out of sync, so that one broker
alone has all of a partition. Nothing is wrong yet. When that broker dies, the
groups on the partition have no coordinator, while all others go on.
"""

from kelpie.lab.scenarios.coordinated_groups import OFFSETS_TOPIC, lookup, two_groups
from kelpie.lab.scenarios.stage import Stage

NAME = "offsets-topic-at-risk"
PERSONAS = ("4.3", "3.9", "2.8", "0.9")


async def run(stage: Stage) -> None:
    groups = await two_groups(stage, 1, 2, config={"min.insync.replicas": 1})
    cluster, at_risk = groups.cluster, groups.first

    stage.step("Brokers 2 and 3 stop following partition 0, and fall out of its ISR.")
    lag = cluster.shrink_isr(OFFSETS_TOPIC, 0, [1])
    await cluster.wait_until(lambda state: state["topics"][OFFSETS_TOPIC][0]["isr"] == [1])
    named = await lookup(stage, cluster, 2, at_risk)
    stage.expect(named.node_id == 1, f"{at_risk} has its coordinator, broker {named.node_id}, as before")
    await stage.incident(cluster, finds={"KLP106": []})

    stage.step("They catch up.")
    lag.lift()
    await cluster.wait_until(lambda state: len(state["topics"][OFFSETS_TOPIC][0]["isr"]) == 3)
    stage.say("Three replicas are in sync again.")
