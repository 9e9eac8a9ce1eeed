"""The whole of `kelpie doctor` against the survey alone, and against Kafka's own kafka-consumer-groups.

On three real Kafka 4.3.1 brokers with 10,000 groups: first all groups are healthy, then one broker is killed
that held a third of the offsets partitions alone. (So the doctor warns of these partitions from the start.)
Every contender is a process of its own, start included, on the same machine; they take turns. Kafka's tool is
measured while all is well: with a dead coordinator it gives up.
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
_STATUS_WARNING, _STATUS_CRITICAL = 1, 2
_LEADERLESS, _AT_RISK = "KLP101", "KLP106"


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
        surveys, healthy = _in_turn(bootstrap, store)
        tool_s, _ = measure_tool(cluster)
        cluster.kill(3)
        surveys_of_hit, hit = _in_turn(bootstrap, store)
    _check(healthy, hit)
    without = _count(hit[-1], _LEADERLESS)
    survey_s, survey_hit_s = statistics.median(surveys), statistics.median(surveys_of_hit)
    doctor_s, hit_s = _seconds(healthy), _seconds(hit)
    return Report(
        title="Doctor",
        about=f"{GROUPS:,} groups with {PARTITIONS} partitions each, three brokers; medians of {ROUNDS}. "
        f"With one broker dead, {without:,} groups have no coordinator. The doctor surveys, reads the end of "
        "the offsets topic, recalls earlier looks, judges, prints JSON and remembers.",
        header=["", "kelpie doctor", "the survey alone", PEER],
        rows=[
            ["all healthy: whole process, s", f"{doctor_s:.2f}", f"{survey_s:.2f}", f"{tool_s:.2f}"],
            ["one broker dead: whole process, s", f"{hit_s:.2f}", f"{survey_hit_s:.2f}", "–"],
            ["all healthy: most memory, MB", f"{_peak(healthy):.0f}", "–", "–"],
            ["one broker dead: most memory, MB", f"{_peak(hit):.0f}", "–", "–"],
        ],
        ratios=[
            Ratio("doctor", tool_s / doctor_s, PEER),
            Ratio("doctor-hit", tool_s / hit_s, PEER),
            Ratio("doctor", survey_s / doctor_s, "the survey alone"),
            Ratio("doctor-hit", survey_hit_s / hit_s, "the survey alone"),
        ],
    )


def _in_turn(bootstrap: str, store: str) -> tuple[list[float], list[Run]]:
    """The survey and the doctor by turns: what else the machine does hits both."""
    rounds = [(measure_survey(bootstrap)[0], _doctor(bootstrap, store)) for _ in range(ROUNDS)]
    return [took for took, _ in rounds], [run for _, run in rounds]


def _check(healthy: list[Run], hit: list[Run]) -> None:
    for each in healthy:
        assert each.status == _STATUS_WARNING, each.said["summary"]
        assert {finding["code"] for finding in each.said["findings"]} == {_AT_RISK}, each.said["summary"]
        assert len(each.said["groups"]) == GROUPS
    for each in hit:
        assert each.status == _STATUS_CRITICAL, each.said["summary"]
        assert GROUPS / 4 < _count(each, _LEADERLESS) < GROUPS / 2, each.said["summary"]


def _count(run: Run, code: str) -> int:
    return sum(finding["code"] == code for finding in run.said["findings"])


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
