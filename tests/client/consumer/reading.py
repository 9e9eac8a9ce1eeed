"""Polling until something holds, with a limit."""

import asyncio
from collections.abc import Callable

from kelpie.client.consumer import Consumer
from kelpie.consumer.effects import ConsumedRecord

PATIENCE_S = 60.0


async def poll_until(
    condition: Callable[[], object], *consumers: Consumer, limit_s: float = PATIENCE_S
) -> list[ConsumedRecord]:
    """Poll these consumers in turn until it holds; all records that came."""
    got: list[ConsumedRecord] = []
    deadline = asyncio.get_running_loop().time() + limit_s
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, (
            f"did not come true within {limit_s} s; last steps: {[each.steps[-5:] for each in consumers]}"
        )
        for polled in await asyncio.gather(*(consumer.poll(0.1) for consumer in consumers)):
            got += polled
    return got


async def read(consumer: Consumer, count: int, limit_s: float = PATIENCE_S) -> list[str]:
    """At least so many values, in order of partition and offset."""
    got: list[ConsumedRecord] = []
    deadline = asyncio.get_running_loop().time() + limit_s
    while len(got) < count:
        assert asyncio.get_running_loop().time() < deadline, (
            f"{len(got)} of {count} records came within {limit_s} s; last steps: {consumer.steps[-6:]}"
        )
        got += await consumer.poll(0.2)
    got.sort(key=lambda record: (record.topic, record.partition, record.offset))
    return [(record.value or b"").decode() for record in got]
