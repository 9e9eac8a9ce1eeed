"""A consumer reads and never commits.

enable.auto.commit is off, and the application forgot to commit. As long as it
runs, nothing is missing. When it restarts, it begins where its reset policy
says: here at the beginning, so that everything is read again.
"""

from kelpie.lab.scenarios.application import QUICK_AND_SMALL, Application, CommitPolicy
from kelpie.lab.scenarios.group_pair import AFFECTED, HEALTHY, PARTITION, TOPIC, produce_steadily
from kelpie.lab.scenarios.stage import Stage

NAME = "never-commits"
PERSONAS = ("4.3", "3.9", "2.8")


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(1, config=QUICK_AND_SMALL)
    cluster.create_topic(TOPIC)
    stage.step(f"Group {HEALTHY} reads {TOPIC} and commits; records come in.")
    traffic = produce_steadily(stage, cluster, TOPIC)
    healthy = Application(stage, cluster, HEALTHY, [TOPIC]).start()
    await healthy.until_at(PARTITION, 10)
    await stage.calm(cluster)

    stage.step(f"Group {AFFECTED} reads it, too, and commits nothing.")
    reader = Application(
        stage, cluster, AFFECTED, [TOPIC], commits=CommitPolicy.ON_DEMAND, session_timeout_ms=500
    ).start()
    await reader.until_at(PARTITION, 50)
    traffic.cancel()
    await stage.incident(cluster, finds={"KLP312": [AFFECTED]}, after_s=0.8)

    stage.step("It restarts.")
    read = reader.read
    await reader.close()
    again = Application(stage, cluster, AFFECTED, [TOPIC]).start()
    await again.until_at(PARTITION, read)
    stage.expect(again.began_at(PARTITION) == 0, f"it begins at 0, and reads {read} records once more")
