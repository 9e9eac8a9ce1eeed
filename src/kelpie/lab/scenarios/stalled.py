"""A consumer is alive, and does not move.

A consumer meets a record that it cannot process, and tries again and again. Its
heartbeats go on, so the group is Stable; its commits go on too, at the same
offset. Another group reads the same topic without trouble.
"""

import asyncio

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.two_groups import ILL, PARTITION, TwoGroups

NAME = "stalled"
PERSONAS = ("4.3", "3.9", "2.8")


async def run(stage: Stage) -> None:
    groups = await TwoGroups.start(stage)
    cluster = groups.cluster
    stage.step(f"The consumer of {ILL} meets a record that it cannot process.")
    groups.ill.stuck = True
    await asyncio.sleep(0.5)
    before = await administering.committed(stage, cluster, ILL, PARTITION)
    await stage.incident(cluster, finds={"KLP309": [ILL]}, seconds_of_history=2.2)
    after = await administering.committed(stage, cluster, ILL, PARTITION)
    end = await administering.end_of(stage, cluster, PARTITION)
    stage.expect(before == after < end, f"{ILL} stands at {after}, as before; the log ends at {end}")

    stage.step("It gets over it.")
    groups.ill.stuck = False
    came = await groups.ill.until_at(PARTITION, end)
    stage.expect(came >= end, f"{ILL} has come to {came}")
