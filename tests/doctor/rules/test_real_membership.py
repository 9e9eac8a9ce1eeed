"""The rules on membership against real Kafka 4.3.1 and real consumers (librdkafka), ill and well at once.

The storm and two more slow pollers are in the recordings (tests/doctor/test_recordings.py).
"""

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kelpie.client.settings import Settings
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.evidence import read_evidence
from kelpie.examination import Examination
from kelpie.real.cluster import RealCluster
from kelpie.store import Store

pytestmark = pytest.mark.real

ORDERS = ["orders"]
SHOPS = [f"shop-{number}" for number in range(6)]
LIMIT_S = 40.0
_ROOT = Path(__file__).parents[3]


def _apps(count: int, topics: list[str] = ORDERS, **plan: Any) -> list[dict[str, Any]]:
    return [{"name": f"app-{number}", "topics": topics, **plan} for number in range(count)]


GROUPS = {
    "well": _apps(2),
    "idle": _apps(3),
    "lopsided": _apps(3, SHOPS),
    "full": _apps(4),
    "stuck": [{"name": "app-0", "topics": ORDERS, "busy": 600}, {"name": "app-1", "topics": ORDERS}],
    "slow": _apps(1, session=4_000, limit=4_000, busy=5),
    "fenced": _apps(2, instance="a"),
    "mixed": [*_apps(1), {"name": "app-1", "topics": ORDERS, "assignor": "roundrobin"}],
    "dead": _apps(1, session=1_500),
    "refused": _apps(1, session=1_900_000, limit=2_000_000),
    "longest": _apps(1, session=1_800_000, limit=2_000_000),
    "wordy": _apps(1, busy=0.1, metadata=4100),
    "brief": _apps(1, busy=0.1, metadata=4000),
}
"""Brokers allow sessions of 30 min, and a text of 4,096 bytes with an offset: two groups keep to that.

Only the dead one has a short session: on a busy machine, heartbeats of the living come seconds late, too.
"""
TRUTH = {
    "KLP202": {"stuck"},
    "KLP203": {"slow"},
    "KLP204": {"dead"},
    "KLP205": {"fenced"},
    "KLP206": {"mixed"},
    "KLP207": {"idle", "full"},
    "KLP208": {"lopsided"},
    "KLP209": {"full", "idle", "lopsided"},
    "KLP210": {"slow"},
    "KLP213": {"refused"},
    "KLP320": {"wordy"},
}
"""Those with three members are full: that is what group.max.size allows."""


class Run:
    """All groups at once, each in a process that writes its log into one folder."""

    def __init__(self, cluster: RealCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "logs").mkdir()

    def start(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        topics = [NewTopic("orders", 2, 1), *(NewTopic(name, 1, 1) for name in SHOPS)]
        for created in admin.create_topics(topics).values():
            created.result(LIMIT_S)
        for group, plans in GROUPS.items():
            command = [sys.executable, "-m", "tests.doctor.rules.members"]
            command += [self.cluster.bootstrap_servers, group, json.dumps(plans)]
            with (self.folder / "logs" / f"{group}.log").open("wb") as log:
                self.processes[group] = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log, cwd=_ROOT
                )

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()

    def until_assigned(self, group: str) -> None:
        """Returns when the broker has the first assignment of a group.

        With it the broker writes the group's members, and the length of their sessions, to the offsets topic.
        The line "Stabilized group" comes before that: a member that dies then is never written.
        """
        log = self.cluster.brokers[0].log
        line = re.compile(rf"Assignment received from leader \S+ for group {group} for generation 1\b")
        deadline = time.monotonic() + LIMIT_S
        while not line.search(log.read_text(errors="replace")):
            assert time.monotonic() < deadline, f"the log does not hold {line.pattern}"
            time.sleep(0.1)

    async def diagnosed(self) -> Diagnosis:
        """Looks again and again, as `kelpie doctor --watch` does, until all is found or time is up."""
        deadline = time.monotonic() + LIMIT_S
        store = Store(self.folder / "store")
        while True:
            shutil.copy(self.cluster.brokers[0].log, self.folder / "logs" / "broker-1.log")
            evidence = read_evidence([self.folder / "logs"])
            settings = Settings.of(self.cluster.bootstrap_servers)
            diagnosis, _, _ = await Examination(settings, evidence=evidence, store=store).examine()
            if (_found(diagnosis) == TRUTH and _is_refused(diagnosis)) or time.monotonic() > deadline:
                return diagnosis
            await asyncio.sleep(0.3)


def _is_refused(diagnosis: Diagnosis) -> bool:
    """Whether the one that comes too late was told so already."""
    full = [it for it in diagnosis.findings if (it.code, it.group) == ("KLP209", "full")]
    return any("refused app-3" in it.summary for it in full)


def _found(diagnosis: Diagnosis) -> dict[str, set[str | None]]:
    found: dict[str, set[str | None]] = {}
    for finding in diagnosis.findings:
        if finding.code.startswith("KLP2") or finding.code == "KLP320":
            found.setdefault(finding.code, set()).add(finding.group)
    return found


@pytest.fixture(scope="module")
def diagnosis(
    real_kafka: Callable[..., RealCluster], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Diagnosis]:
    run = Run(real_kafka(**{"group.max.size": 3}), tmp_path_factory.mktemp("membership"))
    try:
        run.start()
        run.until_assigned("dead")
        run.processes["dead"].kill()
        yield asyncio.run(run.diagnosed())
    finally:
        run.end()


def test_every_ill_group_is_named_and_no_other(diagnosis: Diagnosis) -> None:
    """Thirteen groups on one broker; each has what was done to it, and the well ones have nothing."""
    assert _found(diagnosis) == TRUTH


def test_findings_name_the_members_and_their_numbers(diagnosis: Diagnosis) -> None:
    """From logs of librdkafka and of the broker, the records of the offsets topic and descriptions."""
    told = {(finding.code, finding.group): finding for finding in diagnosis.findings}
    assert "waits for app-0 to rejoin" in told["KLP202", "stuck"].summary
    assert "its limit is 4 s (max.poll.interval.ms)" in told["KLP203", "slow"].summary
    assert "no heartbeat came for a whole session of 1.5 s" in told["KLP204", "dead"].summary
    assert "group.instance.id a " in told["KLP205", "fenced"].summary
    assert "refused app-1" in told["KLP206", "mixed"].summary
    assert "app-0 has 6 partitions" in told["KLP208", "lopsided"].summary
    assert "refused app-3" in told["KLP209", "full"].summary
    assert "UNKNOWN_MEMBER_ID (25)" in told["KLP210", "slow"].summary
    assert "The brokers allow 500 ms to 30 min." in told["KLP213", "refused"].summary
    assert "OFFSET_METADATA_TOO_LARGE (12)" in told["KLP320", "wordy"].summary
