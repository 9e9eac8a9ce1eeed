"""The brokers' clock is 90 s behind the clock of whoever looks.

Two groups read and commit all the time. By the times in their commits, both
seem to have been silent for 90 s; they are not. Then one of them stops: that
one is found all the same.
"""

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.group_pair import AFFECTED, PARTITION, GroupPair
from kelpie.lab.scenarios.stage import Stage

NAME = "clocks-differ"
PERSONAS = ("4.3",)

_BEHIND_S = 90.0


async def run(stage: Stage) -> None:
    wall = stage.environment.wall
    groups = await GroupPair.start(stage, wall=lambda: wall() - _BEHIND_S)
    stage.say(f"The brokers' clock is {_BEHIND_S:.0f} s behind.")
    await stage.incident(groups.cluster, finds={"KLP316": []}, after_s=5.0)

    stage.step(f"The consumer of {AFFECTED} leaves.")
    await groups.affected.close()
    at = await administering.committed(stage, groups.cluster, AFFECTED, PARTITION)
    ends = await stage.until(
        lambda: administering.log_ends(stage, groups.cluster, PARTITION), lambda ends: ends.latest > at
    )
    stage.expect(at < ends.latest, f"{AFFECTED} stands at {at}, and the log ends at {ends.latest}")
    await stage.incident(groups.cluster, finds={"KLP310": [AFFECTED], "KLP316": []}, after_s=25.0)
