"""The coordinator is well, and clients cannot connect to it.

A firewall, a wrong port or an address that only means something inside the
brokers' own network (advertised.listeners): the other brokers see the
coordinator and name it to whoever asks, and a client that follows finds
nobody there. It asks again, is told the same, and never joins.
"""

from kelpie.client.client_errors import Unreachable
from kelpie.lab.scenarios.coordinated_groups import lookup, two_groups
from kelpie.lab.scenarios.stage import Stage
from kelpie.questions.metadata import AskMetadata

NAME = "coordinator-unreachable"
PERSONAS = ("4.3", "3.9", "2.8", "0.9")


async def run(stage: Stage) -> None:
    groups = await two_groups(stage, 2, 1)
    cluster, cut_off = groups.cluster, groups.first

    stage.step("A wall goes up before broker 2: no client reaches it, the other brokers do.")
    await groups.members[cut_off].crash()
    wall = await cluster.wall_off(2)
    named = await lookup(stage, cluster, 1, cut_off)
    address = f"{named.host}:{named.port}"
    stage.expect(named.node_id == 2, f"{cut_off}: broker 1 names broker {named.node_id} at {address}")
    try:
        async with await stage.connect(address):
            result = "it answers"
    except Unreachable:
        result = "the connection is refused"
    stage.expect(result == "the connection is refused", f"{cut_off}: connecting to it: {result}")
    await stage.incident(cluster, finds={"KLP105": [cut_off]})

    stage.step("The wall is taken down.")
    wall.lift()
    async with await stage.connect(address) as connection:
        cluster_facts = await connection.put(AskMetadata(()))
    stage.expect(bool(cluster_facts.brokers), "broker 2 answers again")
