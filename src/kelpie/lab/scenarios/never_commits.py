"""A consumer reads and never commits.

enable.auto.commit is off, and the application forgot to commit. As long as it
runs, nothing is missing. When it restarts, it begins where its reset policy
says: here at the beginning, so that everything is read again.
"""

import asyncio

from kelpie.lab.scenarios.reader import NEVER, SETTINGS, Reader
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.two_groups import ILL, PARTITION, TOPIC, WELL, trickle

NAME = "never-commits"
PERSONAS = ("4.3", "3.9", "2.8")


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(1, config=SETTINGS)
    cluster.create_topic(TOPIC)
    stage.step(f"Group {WELL} reads {TOPIC} and commits; records come in.")
    traffic = trickle(stage, cluster, TOPIC)
    well = Reader(stage, cluster, WELL, [TOPIC])
    await well.start()
    await well.until_at(PARTITION, 10)
    await stage.calm(cluster)

    stage.step(f"Group {ILL} reads it, too, and commits nothing.")
    reader = Reader(stage, cluster, ILL, [TOPIC], commits=NEVER, session_ms=500)
    await reader.start()
    await reader.until_at(PARTITION, 50)
    traffic.cancel()
    await asyncio.sleep(0.8)
    await stage.incident(cluster, finds={"KLP312": [ILL]})

    stage.step("It restarts.")
    read = reader.read
    await reader.close()
    again = Reader(stage, cluster, ILL, [TOPIC])
    await again.start()
    await again.until_at(PARTITION, read)
    stage.expect(again.taken.get(PARTITION) == 0, f"it begins at 0, and reads {read} records once more")
