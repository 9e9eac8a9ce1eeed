"""The consumers of a group are gone, and records wait.

A group that has committed regularly loses its last consumer; nobody starts
another one. Producers write on.
"""

import asyncio

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.reader import Reader
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.two_groups import ILL, PARTITION, TOPIC, TwoGroups

NAME = "stopped"
PERSONAS = ("4.3", "3.9", "2.8")


async def run(stage: Stage) -> None:
    groups = await TwoGroups.start(stage)
    cluster = groups.cluster
    stage.step(f"The consumer of {ILL} leaves.")
    await groups.ill.close()
    await asyncio.sleep(2.2)
    end = await administering.end_of(stage, cluster, PARTITION)
    at = await administering.committed(stage, cluster, ILL, PARTITION)
    stage.expect(at < end, f"{ILL} stands at {at}, nobody is in it, and the log ends at {end}")
    await stage.incident(cluster, finds={"KLP310": [ILL]})

    stage.step("Somebody starts it again.")
    again = Reader(stage, cluster, ILL, [TOPIC])
    await again.start()
    came = await again.until_at(PARTITION, end)
    stage.expect(came >= end, f"{ILL} has come to {came}")
