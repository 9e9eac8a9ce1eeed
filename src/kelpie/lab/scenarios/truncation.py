"""A log that is truncated: what the scenarios beyond-log-end and epoch-diverged share."""

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.application import QUICK_AND_SMALL, Application, CommitPolicy
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition

GROUP, TOPIC = "billing", "orders"
PARTITION = TopicPartition(TOPIC, 0)


async def cut_off(stage: Stage) -> Cluster:
    """Afterwards the group has committed 100, and the log of the new leader ends at 50."""
    cluster = await stage.cluster(3, config=QUICK_AND_SMALL)
    cluster.create_topic(TOPIC, assignment={0: (1, 2)})
    await produce(stage, cluster, TOPIC, 50)
    stage.step(f"Group {GROUP} reads the 50 records of {PARTITION}, which is on brokers 1 and 2.")
    reader = Application(stage, cluster, GROUP, [TOPIC], commits=CommitPolicy.ON_CLOSE).start()
    await reader.until_at(PARTITION, 50)
    await stage.calm(cluster)

    stage.step("Broker 2 falls behind. 50 more records come in, and are read.")
    cluster.shrink_isr(TOPIC, 0, [1])
    await produce(stage, cluster, TOPIC, 50)
    await reader.until_at(PARTITION, 100)
    await reader.close()
    at = await administering.committed(stage, cluster, GROUP, PARTITION)
    stage.expect(at == 100, f"the committed offset of {GROUP} is {at}")

    stage.step("Broker 1 dies, and somebody elects broker 2, which was not in sync.")
    await cluster.kill(1)
    await cluster.wait_until(lambda state: state["topics"][TOPIC][0]["leader"] < 0)
    cluster.elect(TOPIC, 0, unclean=True)
    end = (await administering.log_ends(stage, cluster, PARTITION)).latest
    stage.expect(end == 50, f"the log of {PARTITION} ends at {end}")
    return cluster
