"""A log is cut off, and a group stands behind its end.

One of two replicas falls behind. The leader takes records that the other one
does not have, a group reads and commits them, and the leader dies. Somebody
elects the other replica, which was not in sync: those records are gone, and the
group's offset points to where the log is not. When its consumer starts, the
offset is refused.
"""

from kelpie.lab.scenarios.reader import Reader
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.truncation import GROUP, PARTITION, TOPIC, cut_off

NAME = "beyond-log-end"
PERSONAS = ("4.3", "3.9", "2.8")


async def run(stage: Stage) -> None:
    cluster = await cut_off(stage)
    await stage.incident(cluster, finds={"KLP304": [GROUP]})

    stage.step("Its consumer starts again.")
    again = Reader(stage, cluster, GROUP, [TOPIC])
    await again.start()
    await again.until_at(PARTITION, 50)
    stage.expect(again.taken.get(PARTITION) == 100, f"it takes up its offset {again.taken.get(PARTITION)}")

    async def position() -> int:
        return again.positions.get(PARTITION, -1)

    came = await stage.until(position, lambda at: at == 50)
    stage.expect(came == 50, f"it is refused, begins at the beginning, and reads on to {came}")
