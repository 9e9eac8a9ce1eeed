"""A transaction that commits offsets is left open: nobody learns where the group stands.

An application reads, writes and commits its offsets in one transaction, over and
over. One of them is neither committed nor aborted: the application hangs. A
consumer that starts now asks for stable offsets and hears UNSTABLE_OFFSET_COMMIT
until the transaction ends with its timeout, a minute later.
"""

import asyncio

from kelpie.errors import ErrorCode
from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.application import QUICK_AND_SMALL
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.transacting import TransactionalProducer
from kelpie.model.names import TopicPartition
from kelpie.questions.offset_fetch import AskCommitted

NAME = "unstable-offset"
PERSONAS = ("4.3", "3.9", "2.8")

_GROUP, _TOPIC = "billing", "orders"
_PARTITION = TopicPartition(_TOPIC, 0)


async def run(stage: Stage) -> None:
    settings = {**QUICK_AND_SMALL, "transaction.state.log.num.partitions": 1}
    cluster = await stage.cluster(1, config=settings)
    cluster.create_topic(_TOPIC)
    await produce(stage, cluster, _TOPIC, 100)
    stage.step(f"An application commits the offsets of {_GROUP} in transactions.")
    app = TransactionalProducer(stage, cluster, "app-1")
    await app.start()
    for offset in range(10, 101, 10):
        await app.send_offsets(_GROUP, _PARTITION, offset)
        await app.end()
        await asyncio.sleep(0.1)

    async def offset_now() -> int:
        return await administering.committed(stage, cluster, _GROUP, _PARTITION)

    at = await stage.until(offset_now, lambda seen: seen == 100)
    stage.expect(at == 100, f"{_GROUP} stands at {at}")
    await stage.calm(cluster)

    stage.step("The next transaction is left open.")
    await produce(stage, cluster, _TOPIC, 10)
    await app.send_offsets(_GROUP, _PARTITION, 110)
    code = await _fetch_stable(stage, cluster.bootstrap_servers)
    stage.expect(
        code is ErrorCode.UNSTABLE_OFFSET_COMMIT,
        f"whoever asks for the stable offset hears {code} {code.name}",
    )
    await stage.incident(cluster, finds={"KLP307": [_GROUP]}, after_s=2.2)

    stage.step("The application starts again with its transactional id, which aborts the transaction.")
    await TransactionalProducer(stage, cluster, "app-1").start()
    at = await stage.until(offset_now, lambda seen: seen == 100)
    stage.expect(at == 100, f"{_GROUP} stands at {at}")


async def _fetch_stable(stage: Stage, address: str) -> ErrorCode:
    async with await stage.connect(address, "billing-1") as connection:
        offsets = await connection.put(AskCommitted(_GROUP, (_PARTITION,)))
    return ErrorCode(offsets.partitions[_PARTITION].error)
