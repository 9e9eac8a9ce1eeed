"""A log is cut off and grows again: a group stands on records that it has not read.

As in beyond-log-end, records that a group has read are lost in an unclean
election. But before its consumer starts again, the log has grown past its
offset. Nothing refuses the offset now: the group would go on in the middle of
other records than those it has read. Only the leader epoch, which commits carry,
tells: that of the commit ends before the offset.
"""

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.application import Application
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.truncation import GROUP, PARTITION, TOPIC, cut_off

NAME = "epoch-diverged"
PERSONAS = ("4.3", "3.9", "2.8")


async def run(stage: Stage) -> None:
    cluster = await cut_off(stage)
    stage.step("200 more records come in.")
    await produce(stage, cluster, TOPIC, 200)
    end = (await administering.log_ends(stage, cluster, PARTITION)).latest
    stage.expect(end == 250, f"the log of {PARTITION} ends at {end}; {GROUP} stands at 100")
    await stage.incident(cluster, finds={"KLP305": [GROUP]})

    stage.step("Its consumer starts again, one that does not ask for epochs.")
    again = Application(stage, cluster, GROUP, [TOPIC], validate_positions=False).start()
    await again.until_at(PARTITION, 250)
    stage.expect(again.read == 150, f"it reads {again.read} of the 200 new records, and skips the others")
