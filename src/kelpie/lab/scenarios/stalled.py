"""A consumer is alive, and does not move.

A consumer meets a record that it cannot process, and tries again and again. Its
heartbeats go on, so the group is Stable; its commits go on too, at the same
offset. Another group reads the same topic without trouble.
"""

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.group_pair import AFFECTED, PARTITION, GroupPair
from kelpie.lab.scenarios.stage import Stage

NAME = "stalled"
PERSONAS = ("4.3", "3.9", "2.8")


async def run(stage: Stage) -> None:
    groups = await GroupPair.start(stage)
    cluster = groups.cluster
    stage.step(f"The consumer of {AFFECTED} meets a record that it cannot process.")
    groups.affected.pause()
    before = await stage.until(
        lambda: administering.committed(stage, cluster, AFFECTED, PARTITION),
        lambda offset: offset == groups.affected.position(PARTITION),
    )
    await stage.incident(cluster, finds={"KLP309": [AFFECTED]}, after_s=0.5, seconds_of_history=16.0)
    after = await administering.committed(stage, cluster, AFFECTED, PARTITION)
    end = (await administering.log_ends(stage, cluster, PARTITION)).latest
    stage.expect(before == after < end, f"{AFFECTED} stands at {after}, as before; the log ends at {end}")

    stage.step("It gets over it.")
    groups.affected.unpause()
    position = await groups.affected.until_at(PARTITION, end)
    stage.expect(position >= end, f"{AFFECTED} has come to {position}")
