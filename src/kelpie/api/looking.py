"""Looking at single things: `kelpie peek`, `kelpie probe`, `kelpie consume`, `kelpie collect`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace

from kelpie.api.places import FolderLike, Place, settings_at
from kelpie.client import peek as peeking
from kelpie.client.consumer.group_reading import GroupReading
from kelpie.client.nodes import Nodes
from kelpie.client.peek import Peek
from kelpie.client.probe import Probe, ProbeReport, ProbeTarget
from kelpie.collect.collecting import Collector, CollectPlan, Round
from kelpie.consumer.config import GroupProtocol
from kelpie.consumer.effects import ConsumedRecord
from kelpie.consumer.positions.reset_policy import ResetPolicy
from kelpie.consumer.steps import ConsumerStep
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.names import TopicPartition
from kelpie.places import place_of

_POLL_S = 0.5


async def peek(cluster: Place, topic: str, partition: int, offset: int, *, count: int = 1) -> Peek:
    """Records as they lie in the log. Joins no group and commits nothing. Raises KelpieError."""
    async with await Nodes.open(settings_at(cluster)) as nodes:
        return await peeking.peek(nodes, TopicPartition(topic, partition), offset, count)


async def probe(
    cluster: Place,
    group: str | None = None,
    *,
    topic: str | None = None,
    join: bool = True,
    join_as: str | None = None,
    reset: str = "latest",
    protocol: str = "classic",
) -> ProbeReport:
    """Walks the way of a consumer to its next record, step by step. The group is only read.

    `topic`: needed without a group, or where nothing tells what it reads. `join`: whether joining is tried
    with a scratch group on the same partition of the offsets topic. `join_as`: joins a group of this very
    name, which is rebalanced by that. A step that fails is in the report. Raises KelpieError.
    """
    if group is None and topic is None:
        raise KelpieError("There is nothing to probe: name a group, or a topic.")
    if protocol not in tuple(GroupProtocol):
        raise KelpieError(f"There is no group protocol {protocol!r}; choose {', '.join(GroupProtocol)}.")
    target = ProbeTarget(
        group,
        topic,
        join_as=join_as,
        joins=join,
        policy=_policy(reset),
        protocol=GroupProtocol(protocol),
    )
    return await Probe(replace(settings_at(cluster), client_id="kelpie-probe"), target).run()


async def consume(
    cluster: Place,
    group: str,
    topics: str | Iterable[str],
    *,
    reset: str = "latest",
    most: int | None = None,
    idle_s: float | None = None,
    on_step: Callable[[ConsumerStep], None] | None = None,
) -> AsyncIterator[ConsumedRecord]:
    """Records of topics, read as a member of a group: it joins, takes partitions and commits.

    A record is committed when the next one is asked for, so one at which the caller stops comes again.
    `reset`: where to begin without a committed offset. Ends after `most` records, or when none has come for
    `idle_s` seconds; else it goes on. `on_step` hears what the consumer does and why. Raises KelpieError.
    """
    names = (topics,) if isinstance(topics, str) else tuple(dict.fromkeys(topics))
    settings = replace(settings_at(cluster), client_id="kelpie-consume")
    async with await Nodes.open(settings) as nodes:  # Says at once if no broker answers.
        memory = nodes.memory
    now = asyncio.get_running_loop().time
    async with GroupReading(
        settings, group, names, reset=_policy(reset), memory=memory, on_step=on_step
    ) as reading:
        count, last = 0, now()
        while (most is None or count < most) and (idle_s is None or now() - last < idle_s):
            for record in await reading.poll(_POLL_S, 1):
                yield record
                count, last = count + 1, now()


def _policy(text: str) -> ResetPolicy:
    """Raises KelpieError."""
    try:
        return ResetPolicy.parse(text)
    except ValueError as error:
        raise KelpieError(str(error)) from None


async def collect_rounds(
    cluster: Place | None,
    into: FolderLike,
    *,
    zookeeper: str | None = None,
    every_s: float = 30.0,
    for_s: float | None = None,
    most_bytes: int | None = None,
    round_limit_s: float = 120.0,
) -> AsyncIterator[Round]:
    """Takes a survey every so often, writes each as a file into a folder, and reports each round.

    Ends after `for_s`, or when the caller stops asking. `most_bytes`: what the files may take; the oldest go
    first. `cluster` None: ZooKeeper alone. Raises KelpieError.
    """
    settings = settings_at(cluster) if cluster is not None else None
    plan = CollectPlan(place_of(str(into)), settings, zookeeper, every_s, for_s, most_bytes, round_limit_s)
    rounds: asyncio.Queue[Round] = asyncio.Queue()
    stop = asyncio.Event()
    task = asyncio.create_task(Collector(plan, rounds.put_nowait).run(stop))
    try:
        while not (task.done() and rounds.empty()):
            waiting = asyncio.create_task(rounds.get())
            await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                yield waiting.result()
            else:
                waiting.cancel()
        await task
    finally:
        stop.set()
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
