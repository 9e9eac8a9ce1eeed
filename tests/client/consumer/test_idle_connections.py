"""Connections that a consumer no longer needs."""

import asyncio

import pytest

from kelpie.lab import virtual_time
from kelpie.lab.scenarios import Environment, Stage
from kelpie.lab.scenarios.group_setup import gather, new_member
from kelpie.lab.scenarios.kop import A, counting_cluster, finding_at


@pytest.mark.parametrize(("idle_ms", "is_closed"), [(2_000, True), (540_000, False)])
def test_a_connection_that_is_idle_for_too_long_is_closed(idle_ms: int, is_closed: bool) -> None:
    """As Java's client does; those that fetch, and send heartbeats, stay."""

    async def play() -> tuple[int, int]:
        async with Stage("4.3", lambda _: None, environment=Environment.virtual()) as stage:
            cluster = await counting_cluster(stage, (3, 2, 1))
            app = new_member(stage, cluster, "billing", "app-1", connections_max_idle_ms=idle_ms)
            with finding_at(cluster, A):
                await gather(cluster, app)
            before = len(await cluster.mappings())
            await asyncio.sleep(10)
            assert app.is_joined
            return before, len(await cluster.mappings())

    # The node of the mapping tree lives as long as the connection on which the coordinator was asked for.
    assert virtual_time.run(play()) == (1, 0 if is_closed else 1)
