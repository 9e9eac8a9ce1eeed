"""The whole of `kelpie doctor` against the survey alone, and against Kafka's own kafka-consumer-groups.

On three real Kafka 4.3.1 brokers with 10,000 groups: first all groups are healthy, then one broker is killed
that held a third of the offsets partitions alone. (So the doctor warns of these partitions from the start.)
Survey and doctor ask for the same groups, also for those that no broker lists any more.
Every contender is a process of its own, start included, on the same machine; they take turns. Kafka's tool is
measured while all is well: with a dead coordinator it gives up.

BENCH_ROUNDS says how many rounds there are of each, 3 if left out.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.many_groups import GROUPS, PARTITIONS, commit_all, names
from bench.measure import Finished, Ratio, Report, finished
from bench.survey import PEER, PROGRAM, measure_tool
from kelpie.real.cluster import RealCluster

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
_STATUS_WARNING, _STATUS_CRITICAL = 1, 2
_LEADERLESS, _AT_RISK = "KLP101", "KLP106"
_ALONE = "the survey alone"


class Rounds(NamedTuple):
    """The survey and the doctor, by turns."""

    surveys: list[Finished]
    doctors: list[Finished]

    @property
    def said(self) -> list[dict[str, Any]]:
        """By each doctor."""
        return [json.loads(each.output) for each in self.doctors]

    def rows(self, when: str, tool_s: str) -> list[list[str]]:
        """Rows of the table."""
        survey, doctor = _median(self.surveys), _median(self.doctors)
        peak = max(each.peak_mb for each in self.doctors)
        return [
            [f"{when}: CPU, s", f"{doctor.cpu_s:.2f}", f"{survey.cpu_s:.2f}", "–"],
            [f"{when}: whole process, s", f"{doctor.seconds:.2f}", f"{survey.seconds:.2f}", tool_s],
            [f"{when}: most memory, MB", f"{peak:.0f}", "–", "–"],
        ]


def run() -> Report:
    settings = {"offsets.topic.num.partitions": 50, "offsets.topic.replication.factor": 1}
    with (
        RealCluster("4.3.1", brokers=3, config=settings) as cluster,
        tempfile.TemporaryDirectory(prefix="kelpie-bench-") as store,
    ):
        bootstrap = cluster.bootstrap_servers
        asyncio.run(commit_all(bootstrap, replicas=3))
        healthy = _in_turn(bootstrap, store)
        tool_s, _ = measure_tool(cluster)
        cluster.kill(3)
        hit = _in_turn(bootstrap, store, known=names())
    _check(healthy, hit)
    without = _count(hit.said[-1], _LEADERLESS)
    return Report(
        title="Doctor",
        about=f"{GROUPS:,} groups with {PARTITIONS} partitions each, three brokers; medians of {ROUNDS}. "
        f"With one broker dead, {without:,} groups have no coordinator. The doctor surveys, reads the end of "
        "the offsets topic, recalls earlier looks, judges, prints JSON and remembers. CPU is that of all "
        f"threads of the process, and compares the doctor with the survey; {PEER} is compared by time.",
        header=["", "kelpie doctor", _ALONE, PEER],
        rows=[*healthy.rows("all healthy", f"{tool_s:.2f}"), *hit.rows("one broker dead", "–")],
        ratios=[
            Ratio("doctor", tool_s / _median(healthy.doctors).seconds, PEER),
            Ratio("doctor-hit", tool_s / _median(hit.doctors).seconds, PEER),
            Ratio("doctor-cpu", _median(healthy.surveys).cpu_s / _median(healthy.doctors).cpu_s, _ALONE),
            Ratio("doctor-hit-cpu", _median(hit.surveys).cpu_s / _median(hit.doctors).cpu_s, _ALONE),
        ],
    )


def _in_turn(bootstrap: str, store: str, known: Sequence[str] = ()) -> Rounds:
    """By turns: what else the machine does hits both.

    `known`: groups that no broker may list any more. The doctor knows them from its store, so the survey is
    told: both ask for the same groups.
    """
    survey = [sys.executable, "-c", PROGRAM, bootstrap, *known]
    doctor = [sys.executable, "-m", "kelpie", "doctor", "-b", bootstrap, "--store", store, "--json"]
    rounds = [(finished(survey), finished(doctor)) for _ in range(ROUNDS)]
    return Rounds([alone for alone, _ in rounds], [whole for _, whole in rounds])


def _check(healthy: Rounds, hit: Rounds) -> None:
    for each, said in zip(healthy.doctors, healthy.said, strict=True):
        assert each.status == _STATUS_WARNING, said["summary"]
        others = [finding for finding in said["findings"] if finding["code"] != _AT_RISK]
        assert not others, f"{others[0]['code']} of a healthy cluster: {others[0]['summary']}"
        assert len(said["groups"]) == GROUPS
    for each, said in zip(hit.doctors, hit.said, strict=True):
        assert each.status == _STATUS_CRITICAL, said["summary"]
        assert GROUPS / 4 < _count(said, _LEADERLESS) < GROUPS / 2, said["summary"]
    assert all(each.status == 0 for each in (*healthy.surveys, *hit.surveys))


def _count(said: dict[str, Any], code: str) -> int:
    return sum(finding["code"] == code for finding in said["findings"])


def _median(runs: list[Finished]) -> Finished:
    """The run with the median of CPU seconds."""
    cpu_s = statistics.median_low(each.cpu_s for each in runs)
    return next(each for each in runs if each.cpu_s == cpu_s)


if __name__ == "__main__":
    print(run())
