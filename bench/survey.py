"""The survey against Kafka's own kafka-consumer-groups, on one real Kafka 4.3.1 broker with 10,000 groups.

Both are processes of their own, start included, on the same machine and against the same broker; the tool
comes last, when the broker is warm. The survey asks for more: states and members, settings, where logs ended
some time ago.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from typing import Any

from bench.measure import Ratio, Report
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.errors import ErrorCode
from kelpie.real.cluster import RealCluster
from kelpie.wire.api.create_topics import CreatableTopic, CreateTopicsRequest
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

GROUPS = 10_000
PARTITIONS = 10
TOPIC = "orders"
ROUNDS = 5
PEER = "kafka-consumer-groups"
_UNDER_WAY = 200
_LIMIT_S = 60.0
_PROGRAM = """
import asyncio, json, sys, time
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import survey

async def main():
    begun = time.perf_counter()
    async with await Nodes.open(Settings.of(sys.argv[1])) as nodes:
        seen = await survey(nodes)
        asked = nodes.counters
    print(json.dumps({
        "seconds": time.perf_counter() - begun, "groups": len(seen.states), "offsets": len(seen.committed),
        "unasked": len(seen.unasked), "requests": asked.requests, "by_api": asked.by_api, "bytes":
        asked.bytes_in, }))

asyncio.run(main())
"""


def run() -> Report:
    settings = {"offsets.topic.num.partitions": 50}
    with RealCluster("4.3.1", brokers=1, config=settings) as cluster:
        asyncio.run(_commit_all(cluster.bootstrap_servers))
        surveys = [_survey(cluster.bootstrap_servers) for _ in range(ROUNDS)]
        tool_s, tool_rows = _tool(cluster)
    wall = statistics.median(took for took, _ in surveys)
    within = statistics.median(said["seconds"] for _, said in surveys)
    said = surveys[-1][1]
    expected = GROUPS * PARTITIONS
    assert (said["groups"], said["offsets"], said["unasked"]) == (GROUPS, expected, 0), said
    assert tool_rows == expected, f"{PEER} told {tool_rows} offsets"
    by_api = ", ".join(f"{count} {name}" for name, count in Counter(said["by_api"]).most_common())
    return Report(
        title="Survey",
        about=f"{GROUPS:,} groups with {PARTITIONS} partitions each; the survey is the median of {ROUNDS}.",
        header=["", "Kelpie's survey", PEER],
        rows=[
            ["whole process, s", f"{wall:.2f}", f"{tool_s:.2f}"],
            ["of this, asking and reading, s", f"{within:.2f}", "–"],
            ["committed offsets told", f"{said['offsets']:,}", f"{tool_rows:,}"],
            ["bytes received, MB", f"{said['bytes'] / 1e6:.1f}", "–"],
            ["requests", f"{said['requests']} ({by_api})", "–"],
        ],
        ratios=[Ratio("survey", tool_s / wall, PEER)],
    )


def _survey(bootstrap: str) -> tuple[float, dict[str, Any]]:
    begun = time.perf_counter()
    command = [sys.executable, "-c", _PROGRAM, bootstrap]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_LIMIT_S)
    return time.perf_counter() - begun, json.loads(done.stdout)


def _tool(cluster: RealCluster) -> tuple[float, int]:
    begun = time.perf_counter()
    result = cluster.tool(PEER, "--describe", "--all-groups", "--timeout", "300000", limit_s=600.0)
    took = time.perf_counter() - begun
    assert result.status == 0, result.stderr
    return took, sum(f" {TOPIC} " in line for line in result.stdout.splitlines())


async def _commit_all(bootstrap: str) -> None:
    """One commit for each group, many under way."""
    async with await Nodes.open(Settings.of(bootstrap, request_timeout_s=_LIMIT_S)) as nodes:
        topic = CreatableTopic(
            name=TOPIC, num_partitions=PARTITIONS, replication_factor=1, assignments=[], configs=[]
        )
        await nodes.ask_any(CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
        await _until(lambda: _topic_is_there(nodes))
        await _until(lambda: _coordinator_is_there(nodes))
        slots = asyncio.Semaphore(_UNDER_WAY)

        async def commit(number: int) -> None:
            partitions = [
                OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=number, committed_metadata=""
                )
                for partition in range(PARTITIONS)
            ]
            request = OffsetCommitRequest(
                group_id=f"group-{number:05}",
                topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)],
            )
            async with slots:
                await _until(lambda: _committed(nodes, request))

        await asyncio.gather(*(commit(number) for number in range(GROUPS)))


async def _until(holds: object) -> None:
    async with asyncio.timeout(_LIMIT_S):
        while not await holds():  # type: ignore[operator]
            await asyncio.sleep(0.05)


async def _topic_is_there(nodes: Nodes) -> bool:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    response = await nodes.ask_any(request)
    return len(response.topics[0].partitions) == PARTITIONS


async def _coordinator_is_there(nodes: Nodes) -> bool:
    response = await nodes.ask_any(FindCoordinatorRequest(coordinator_keys=["group-00000"]))
    return bool(response.coordinators[0].error_code == ErrorCode.NONE)


async def _committed(nodes: Nodes, request: OffsetCommitRequest) -> bool:
    response = await nodes.ask(1, request, 9)
    return all(
        partition.error_code == ErrorCode.NONE for topic in response.topics for partition in topic.partitions
    )


if __name__ == "__main__":
    print(run())
