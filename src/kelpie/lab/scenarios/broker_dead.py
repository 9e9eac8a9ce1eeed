"""One of three brokers dies, and every group goes on.

Other replicas are in sync, so other brokers lead and coordinate. But topics
with two replicas have one in sync now, and the next broker that dies takes
their partitions with it.
"""

from kelpie.lab.scenarios.coordinated_groups import OFFSETS_TOPIC, lookup, two_groups
from kelpie.lab.scenarios.group_setup import new_member
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition

NAME = "broker-dead"
PERSONAS = ("4.3", "3.9", "2.8")
_TOPIC, _GROUP = "payments", "payers"
_RECORDS = 20


async def run(stage: Stage) -> None:
    groups = await two_groups(stage, 1, 2, config={"min.insync.replicas": 1})
    cluster = groups.cluster
    cluster.create_topic(_TOPIC, assignment={0: (1, 3)})
    await produce(stage, cluster, _TOPIC, _RECORDS)
    stage.step(f"{_TOPIC} has two replicas, on brokers 1 and 3. Group {_GROUP} reads it.")
    member = new_member(stage, cluster, _GROUP, f"{_GROUP}-app", [_TOPIC])
    member.start()
    await member.until_at(TopicPartition(_TOPIC, 0), _RECORDS)
    committed = await member.commit()
    stage.expect(committed == 0, f"{_GROUP} has read {_TOPIC} and committed offset {_RECORDS}")
    await stage.calm(cluster)

    stage.step("Broker 3 dies.")
    await cluster.kill(3)
    await cluster.wait_until(lambda state: state["topics"][_TOPIC][0]["isr"] == [1])
    named = await lookup(stage, cluster, 2, groups.first)
    stage.expect(named.node_id == 1, f"{groups.first} has its coordinator, broker {named.node_id}, as before")
    await stage.incident(cluster, finds={"KLP100": []})

    stage.step("Broker 3 comes back.")
    await cluster.start(3)
    await cluster.wait_until(lambda state: len(state["topics"][OFFSETS_TOPIC][0]["isr"]) == 3)
    stage.say("All replicas are in sync again.")
