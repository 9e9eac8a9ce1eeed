"""A log is cut off, and a group stands behind its end.

One of two replicas falls behind. The leader takes records that the other one
does not have, a group reads and commits them, and the leader dies. Somebody
elects the other replica, which was not in sync: those records are gone, and the
group's offset points to where the log is not. When its consumer starts, the
offset is refused.
"""

from kelpie.lab.scenarios.application import Application
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.truncation import GROUP, PARTITION, TOPIC, cut_off

NAME = "beyond-log-end"
PERSONAS = ("4.3", "3.9", "2.8")


async def run(stage: Stage) -> None:
    cluster = await cut_off(stage)
    await stage.incident(cluster, finds={"KLP304": [GROUP]})

    stage.step("Its consumer starts again.")
    again = Application(stage, cluster, GROUP, [TOPIC], validate_positions=False).start()
    await again.until(lambda: again.position(PARTITION) == 50)
    began, position = again.began_at(PARTITION), again.position(PARTITION)
    stage.expect(began == 100, f"it takes up its offset {began}")
    stage.expect(position == 50, f"it is refused, begins at the beginning, and reads on to {position}")
