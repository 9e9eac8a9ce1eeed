"""The range assignor gives one member all the work.

It deals out each topic on its own, and begins with the same member each time.
With many small topics, what does not divide evenly piles up: with one
partition a topic, the first member gets everything. Roundrobin and the sticky
assignors deal out all partitions together.
"""

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.application import Application
from kelpie.lab.scenarios.group_setup import SINCE_2_8, cluster_with, gather, new_member
from kelpie.lab.scenarios.stage import Stage

NAME = "lopsided-assignment"
PERSONAS = SINCE_2_8
_TOPICS = {f"shop-{number}": 1 for number in range(1, 7)}
_MEMBERS = ("app-1", "app-2", "app-3")


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, _TOPICS)
    even = _members(stage, cluster, "stock-even", "roundrobin")
    lopsided = _members(stage, cluster, "stock", "range")
    stage.step(f"Three members share {len(_TOPICS)} topics of one partition, with roundrobin.")
    await gather(cluster, *even)
    stage.expect(_loads(even) == [2, 2, 2], f"partitions of each: {_loads(even)}")
    await stage.calm(cluster)

    stage.step("Another group does the same with range.")
    await gather(cluster, *lopsided)
    stage.expect(_loads(lopsided) == [0, 0, 6], f"partitions of each: {_loads(lopsided)}")
    await stage.incident(cluster, finds={"KLP208": ["stock"]})


def _members(stage: Stage, cluster: Cluster, group: str, assignor: str) -> list[Application]:
    return [
        new_member(stage, cluster, group, f"{group}-{name}", list(_TOPICS), assignors=[assignor])
        for name in _MEMBERS
    ]


def _loads(members: list[Application]) -> list[int]:
    return sorted(len(member.assignment) for member in members)
