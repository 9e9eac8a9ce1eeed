"""Both clusters, and many scripts at once."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from kelpie.errors import ErrorCode
from kelpie.lab.cluster import Cluster as Lab
from kelpie.lab.memory_network import MemoryNetwork
from kelpie.lab.virtual_time import VirtualLoop
from kelpie.wire.api.create_topics import CreatableTopic, CreateTopicsRequest
from kelpie.wire.api.describe_groups import DescribeGroupsRequest
from kelpie.wire.api.describe_transactions import DescribeTransactionsRequest
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.init_producer_id import InitProducerIdRequest
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from tests.lab.differential.compare import Both, Difference, Live, Player
from tests.lab.differential.connection import Connect, Connections, by_socket
from tests.lab.differential.leaders import Leaders, following
from tests.lab.differential.requests import TOPICS
from tests.lab.differential.script import Script
from tests.lab.differential.side import MAX_SIZE, OFFSETS_PARTITIONS, Cluster

LAB_CONFIG: dict[str, object] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "group.max.size": MAX_SIZE,
    "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
    "transaction.state.log.num.partitions": 2,
}
"""What `kelpie.real` sets for its clusters, and the size."""
_AT_ONCE = 16


@asynccontextmanager
async def both(real: str | Player) -> AsyncIterator[Both]:
    """`real`: the address of a real broker, or what stands for it.

    On a virtual clock, where nobody waits for timers, the lab needs a network inside the process.
    """
    leaders: Leaders = {}
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualLoop):
        network = MemoryNetwork()
        lab, connect = Lab(brokers=1, config=LAB_CONFIG, network=network, wall=loop.wall), network.connect
    else:
        lab, connect = Lab(brokers=1, config=LAB_CONFIG), by_socket
    async with lab:
        with following(leaders):
            player = Live(await prepared(real)) if isinstance(real, str) else real
            yield Both(player, Live(await prepared(lab.bootstrap_servers, connect)), leaders)


async def prepared(address: str, connect: Connect = by_socket) -> Cluster:
    """Has the topics, and coordinators that have loaded."""
    connections = Connections(address, connect)
    try:
        async with asyncio.timeout(60):
            topics = [
                CreatableTopic(
                    name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[]
                )
                for name, count in TOPICS.values()
            ]
            await (await connections.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 5))
            for kind in (0, 1):
                # Every partition has its coordinator: ask for keys of all of them.
                keys = [f"key-{number}" for number in range(50)]
                while await _loading(connections, kind, keys):
                    await asyncio.sleep(0.05)
            # The first producer id makes a broker fetch a block of them.
            first = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            while (await (await connections.ask(first, 4))).error_code:
                await asyncio.sleep(0.05)
            wanted = [MetadataRequestTopic(name=name) for name, _ in TOPICS.values()]
            while True:
                answer = await (await connections.ask(MetadataRequest(topics=wanted), 12))
                if all(topic.error_code == 0 for topic in answer.topics):
                    break
                await asyncio.sleep(0.05)
        ids = {topic.name: topic.topic_id for topic in answer.topics}
        return Cluster(address, {key: ids[name] for key, (name, _) in TOPICS.items()}, connect)
    finally:
        await connections.close()


async def _loading(connections: Connections, kind: int, keys: list[str]) -> bool:
    found = await (await connections.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=keys), 4))
    if any(each.error_code for each in found.coordinators):
        return True
    if kind == 0:
        described = await (await connections.ask(DescribeGroupsRequest(groups=keys), 5))
        return any(each.error_code for each in described.groups)
    described = await (await connections.ask(DescribeTransactionsRequest(transactional_ids=keys), 0))
    there = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    return any(each.error_code != there for each in described.transaction_states)


async def differences(
    sides: Both, scripts: Iterable[Script], *, at_once: int = _AT_ONCE, most: int = 5
) -> list[Difference]:
    """All that are found, until there are too many."""
    waiting = iter(scripts)
    found: list[Difference] = []

    async def work() -> None:
        for script in waiting:
            if len(found) >= most:
                return
            difference = await sides.difference(script)
            sides.played += 1
            if difference is not None:
                found.append(difference)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(work())
    return found
