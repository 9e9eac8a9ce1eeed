"""The consumers of a group are gone, and records wait.

A group that has committed regularly loses its last consumer; nobody starts
another one. Producers write on.
"""

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.application import Application
from kelpie.lab.scenarios.group_pair import AFFECTED, PARTITION, TOPIC, GroupPair
from kelpie.lab.scenarios.stage import Stage

NAME = "stopped"
PERSONAS = ("4.3", "3.9", "2.8")


async def run(stage: Stage) -> None:
    groups = await GroupPair.start(stage)
    cluster = groups.cluster
    stage.step(f"The consumer of {AFFECTED} leaves.")
    await groups.affected.close()
    at = await administering.committed(stage, cluster, AFFECTED, PARTITION)
    ends = await stage.until(
        lambda: administering.log_ends(stage, cluster, PARTITION), lambda ends: ends.latest > at
    )
    end = ends.latest
    stage.expect(at < end, f"{AFFECTED} stands at {at}, nobody is in it, and the log ends at {end}")
    await stage.incident(cluster, finds={"KLP310": [AFFECTED]}, after_s=16.0)

    stage.step("Somebody starts it again.")
    again = Application(stage, cluster, AFFECTED, [TOPIC]).start()
    position = await again.until_at(PARTITION, end)
    stage.expect(position >= end, f"{AFFECTED} has come to {position}")
