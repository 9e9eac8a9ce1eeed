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

from bench.many_groups import GROUPS, LIMIT_S, PARTITIONS, TOPIC, commit_all
from bench.measure import Ratio, Report
from kelpie.real.cluster import RealCluster

ROUNDS = 5
PEER = "kafka-consumer-groups"
PROGRAM = """
import asyncio, json, sys, time
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import survey

async def main():
    begun = time.perf_counter()
    async with await Nodes.open(Settings.of(sys.argv[1])) as nodes:
        seen = await survey(nodes, known=sys.argv[2:])
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
        asyncio.run(commit_all(cluster.bootstrap_servers))
        surveys = [measure_survey(cluster.bootstrap_servers) for _ in range(ROUNDS)]
        tool_s, tool_rows = measure_tool(cluster)
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


def measure_survey(bootstrap: str) -> tuple[float, dict[str, Any]]:
    begun = time.perf_counter()
    command = [sys.executable, "-c", PROGRAM, bootstrap]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S)
    return time.perf_counter() - begun, json.loads(done.stdout)


def measure_tool(cluster: RealCluster) -> tuple[float, int]:
    begun = time.perf_counter()
    result = cluster.tool(PEER, "--describe", "--all-groups", "--timeout", "300000", limit_s=600.0)
    took = time.perf_counter() - begun
    assert result.status == 0, result.stderr
    return took, sum(f" {TOPIC} " in line for line in result.stdout.splitlines())


if __name__ == "__main__":
    print(run())
