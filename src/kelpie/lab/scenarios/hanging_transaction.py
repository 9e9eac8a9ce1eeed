"""A transaction that nobody will end hides everything behind it.

A producer writes records within a transaction. Its transaction coordinator
loses what it knew of it: one replica of the transaction log had fallen behind,
and is elected when the other one dies. Nobody is left who would commit or abort.
The last stable offset stands still, and consumers that read committed records
only get nothing any more, though producers write on.
"""

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.application import QUICK_AND_SMALL, Application
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.transacting import TransactionalProducer
from kelpie.model.names import TopicPartition

NAME = "hanging-transaction"
PERSONAS = ("4.3", "3.9")

_GROUP, _TOPIC, _LOG = "billing", "orders", "__transaction_state"
_PARTITION = TopicPartition(_TOPIC, 0)


async def run(stage: Stage) -> None:
    settings = {
        **QUICK_AND_SMALL,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.min.isr": 1,
    }
    cluster = await stage.cluster(3, config=settings)
    cluster.create_topic(_TOPIC, assignment={0: (2, 3)})
    cluster.create_topic(_LOG, config={"cleanup.policy": "compact"}, assignment={0: (1, 2)})
    stage.step(
        f"Group {_GROUP} reads what is committed in {_PARTITION}; a producer commits two transactions."
    )
    reader = Application(stage, cluster, _GROUP, [_TOPIC], isolation_level="read_committed").start()
    producer = TransactionalProducer(stage, cluster, "shop-1")
    await producer.start()
    for _ in range(2):
        await producer.send(_PARTITION, 20)
        await producer.end()
    await reader.until_at(_PARTITION, 42)
    await stage.calm(cluster)

    stage.step("Another one begins a transaction, and its coordinator forgets it: an unclean election.")
    cluster.shrink_isr(_LOG, 0, [1])
    lost = TransactionalProducer(stage, cluster, "shop-2")
    await lost.start()
    await lost.send(_PARTITION, 10)
    await cluster.kill(1)
    await cluster.wait_until(lambda state: state["topics"][_LOG][0]["leader"] < 0)
    cluster.elect(_LOG, 0, unclean=True)

    stage.step("Producers without transactions write on.")
    await produce(stage, cluster, _TOPIC, 100)
    ends = await administering.log_ends(stage, cluster, _PARTITION)
    end, stable = ends.latest, ends.stable
    stage.expect((stable, end) == (42, 152), f"the log is stable up to {stable}, and ends at {end}")
    at = reader.position(_PARTITION)
    stage.expect(at == stable, f"{_GROUP} waits at {at}")
    await stage.incident(cluster, finds={"KLP100": [], "KLP306": [_GROUP]}, seconds_of_history=0.7)
