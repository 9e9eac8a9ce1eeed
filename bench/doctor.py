"""The whole of `kelpie doctor` against the survey alone, and against Kafka's own kafka-consumer-groups.

On three real Kafka 4.3.1 brokers with 10,000 groups: first all are healthy, then one broker is killed that
held a third of the offsets partitions alone. Every contender is a process of its own, start included, on the
same machine. Kafka's tool is measured while all is well: with a dead coordinator it gives up.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

from bench.many_groups import GROUPS, PARTITIONS, commit_all
from bench.measure import Ratio, Report
from bench.survey import PEER, measure_survey, measure_tool
from kelpie.real.cluster import RealCluster

ROUNDS = 3
_STATUS_HEALTHY, _STATUS_CRITICAL = 0, 2
_LEADERLESS = "KLP101"


class Run(NamedTuple):
    seconds: float
    peak_mb: float
    status: int
    said: dict[str, Any]


def run() -> Report:
    settings = {"offsets.topic.num.partitions": 50, "offsets.topic.replication.factor": 1}
    with (
        RealCluster("4.3.1", brokers=3, config=settings) as cluster,
        tempfile.TemporaryDirectory(prefix="kelpie-bench-") as store,
    ):
        bootstrap = cluster.bootstrap_servers
        asyncio.run(commit_all(bootstrap, replicas=3))
        surveys = [measure_survey(bootstrap)[0] for _ in range(ROUNDS)]
        healthy = [_doctor(bootstrap, store) for _ in range(ROUNDS)]
        tool_s, _ = measure_tool(cluster)
        cluster.kill(3)
        hit = [_doctor(bootstrap, store) for _ in range(ROUNDS)]
    assert {each.status for each in healthy} == {_STATUS_HEALTHY}, healthy[-1].said["summary"]
    assert {each.status for each in hit} == {_STATUS_CRITICAL}, hit[-1].said["summary"]
    without = sum(finding["code"] == _LEADERLESS for finding in hit[-1].said["findings"])
    assert GROUPS / 4 < without < GROUPS / 2, f"{without} groups without a coordinator"
    survey_s, doctor_s, hit_s = statistics.median(surveys), _seconds(healthy), _seconds(hit)
    return Report(
        title="Doctor",
        about=f"{GROUPS:,} groups with {PARTITIONS} partitions each, three brokers; medians of {ROUNDS}. "
        f"With one broker dead, {without:,} groups have no coordinator.",
        header=["", "kelpie doctor", "of these, one broker dead", "the survey alone", PEER],
        rows=[
            ["whole process, s", f"{doctor_s:.2f}", f"{hit_s:.2f}", f"{survey_s:.2f}", f"{tool_s:.2f}"],
            ["most memory, MB", f"{_peak(healthy):.0f}", f"{_peak(hit):.0f}", "–", "–"],
        ],
        ratios=[
            Ratio("doctor", tool_s / doctor_s, PEER),
            Ratio("doctor", survey_s / doctor_s, "survey alone"),
        ],
    )


def _seconds(runs: list[Run]) -> float:
    return statistics.median(each.seconds for each in runs)


def _peak(runs: list[Run]) -> float:
    return max(each.peak_mb for each in runs)


def _doctor(bootstrap: str, store: str) -> Run:
    command = [sys.executable, "-m", "kelpie", "doctor", "-b", bootstrap, "--store", store, "--json"]
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    took = time.perf_counter() - begun
    return Run(took, usage.ru_maxrss / 1024, process.returncode, json.loads(output))


if __name__ == "__main__":
    print(run())
