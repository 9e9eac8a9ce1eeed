"""The coordinator is well, and clients cannot connect to it.

A firewall, a wrong port or an address that only means something inside the
brokers' own network (advertised.listeners): the other brokers see the
coordinator and name it to whoever asks, and a client that follows finds
nobody there. It asks again, is told the same, and never joins.
"""

from kelpie.lab.scenarios.client import RawClient
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.working_groups import lookup, two_groups
from kelpie.wire.api.metadata import MetadataRequest

NAME = "coordinator-unreachable"
PERSONAS = ("4.3", "3.9", "2.8", "0.9")


async def run(stage: Stage) -> None:
    groups = await two_groups(stage, 2, 1)
    cluster, cut_off = groups.cluster, groups.first

    stage.step("A wall goes up before broker 2: no client reaches it, the other brokers do.")
    await groups.members[cut_off].vanish()
    wall = await cluster.wall_off(2)
    found = await lookup(cluster, 1, cut_off)
    stage.expect(
        found.node_id == 2, f"{cut_off}: broker 1 names broker {found.node_id} at {found.host}:{found.port}"
    )
    try:
        async with RawClient("scenario", f"{found.host}:{found.port}") as client:
            await client.ask(MetadataRequest(topics=[]), 0)
        came = "it answers"
    except ConnectionRefusedError:
        came = "the connection is refused"
    stage.expect(came == "the connection is refused", f"{cut_off}: connecting to it: {came}")
    await stage.incident(cluster, finds={"KLP105": [cut_off]})

    stage.step("The wall is taken down.")
    wall.lift()
    async with RawClient("scenario", f"{found.host}:{found.port}") as client:
        answer = await client.ask(MetadataRequest(topics=[]), 0)
    stage.expect(bool(answer.brokers), "broker 2 answers again")
