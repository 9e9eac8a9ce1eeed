"""Real console consumers of 0.8.2.2 fail exactly when the formula says so, and as often as simulated."""

import random
import subprocess
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from kelpie.client.zookeeper_nodes import TreeReader
from kelpie.model.shares import wilson
from kelpie.real.cluster import RealCluster
from kelpie.zookeeper.assignment import assign
from kelpie.zookeeper.simulation.events import EVENTS
from kelpie.zookeeper.simulation.group import GroupSettings
from kelpie.zookeeper.simulation.trials import run_trials
from tests.client.zookeeper_client import kazoo_client
from tests.console_group import PARTITIONS, SETTINGS, ConsoleGroup

pytestmark = [pytest.mark.real, pytest.mark.long]
LIMIT_S = 90.0
RUNS = 3
SESSION = {"zookeeper.session.timeout.ms": 30_000}
"""As in the recording: two JVMs must have started before it ends, on a busy machine, too."""
FAILED = "ConsumerRebalanceFailedException"


def predicted(owners: dict[int, str], dead: set[str], members: set[str]) -> set[str]:
    """Who is given, with the dead ones still registered, a partition that a dead one owns."""
    held = {partition for partition, owner in owners.items() if owner in dead}
    threads = {member: {"t": 1} for member in members}
    return {
        member
        for member in members - dead
        if held & {partition.partition for partition in assign(member, threads, {"t": range(PARTITIONS)})}
    }


@pytest.mark.parametrize(
    ("event", "members"), [("kill+join", 2), ("kill+join", 4), ("kill+leave", 4), ("restart-all", 2)]
)
def test_rebalances_fail_on_real_0_8_2_2_as_predicted_and_as_simulated(
    event: str,
    members: int,
    real_kafka: Callable[..., RealCluster],
    tmp_path: Path,
    wait_until: Callable[..., None],
) -> None:
    """Random victims, and new members with random names."""
    cluster = real_kafka("0.8.2.2")
    hosts = cluster.zookeeper_connect
    assert hosts is not None
    chance = random.Random(members)
    failed_runs = 0
    for run in range(RUNS):
        folder = tmp_path / str(run)
        folder.mkdir()
        with kazoo_client(hosts) as client, ExitStack() as stack:
            name = f"compared-{uuid.uuid4().hex[:8]}"
            group = ConsoleGroup(
                cluster, name, folder, TreeReader(client, hosts, 10), stack, settings=SESSION
            )
            failed, expected = _DONE[event](group, members, chance, wait_until)
        assert failed == expected
        failed_runs += bool(failed)
    settings = GroupSettings(
        members=members,
        partitions=PARTITIONS,
        session_timeout_ms=SESSION["zookeeper.session.timeout.ms"],
        retries=SETTINGS["rebalance.max.retries"],
        backoff_ms=SETTINGS["rebalance.backoff.ms"],
    )
    chances = (random.Random(seed) for seed in range(60))
    share = wilson(failed_runs, RUNS)
    assert share.low <= run_trials(settings, EVENTS[event], chances).failed.observed <= share.high


def _gathered(
    group: ConsoleGroup, names: list[str], wait_until: Callable[..., None]
) -> dict[str, "subprocess.Popen[bytes]"]:
    """Processes by name; they share the partitions, and none of them has failed."""
    processes = {name: group.start(name) for name in names}
    busy = min(len(names), PARTITIONS)
    wait_until(lambda: len(group.shares()) == busy and len(group.owners()) == PARTITIONS, limit_s=LIMIT_S)
    assert not [name for name in names if FAILED in group.said(name)], "a start has failed by itself"
    return processes


def _names(count: int, chance: random.Random) -> list[str]:
    return [f"{chance.randrange(1 << 32):08x}" for _ in range(count)]


def _kill_and_join(
    group: ConsoleGroup, members: int, chance: random.Random, wait_until: Callable[..., None]
) -> tuple[set[str], set[str]]:
    """Members that failed, and those that were expected to."""
    *names, joining = _names(members + 1, chance)
    processes = _gathered(group, names, wait_until)
    owners = group.owners()
    victim = names[chance.randrange(members)]
    processes[victim].kill()
    group.start(joining)
    wait_until(lambda: joining in group.members(), limit_s=LIMIT_S)
    return _failed(group, {victim}, {*names, joining}, owners, wait_until)


def _kill_and_leave(
    group: ConsoleGroup, members: int, chance: random.Random, wait_until: Callable[..., None]
) -> tuple[set[str], set[str]]:
    names = _names(members, chance)
    processes = _gathered(group, names, wait_until)
    owners = group.owners()
    victim, leaving = chance.sample(names, 2)
    processes[victim].kill()
    processes[leaving].terminate()
    wait_until(lambda: leaving not in group.members(), limit_s=LIMIT_S)
    return _failed(group, {victim}, set(names) - {leaving}, owners, wait_until)


def _restart_all(
    group: ConsoleGroup, members: int, chance: random.Random, wait_until: Callable[..., None]
) -> tuple[set[str], set[str]]:
    names, new = _names(members, chance), _names(members, chance)
    processes = _gathered(group, names, wait_until)
    owners = group.owners()
    for process in processes.values():
        process.kill()
    for name in new:
        group.start(name)

    def has_joined(name: str) -> bool:
        """One that fails at its start ends, and its node with it."""
        return name in group.members() or FAILED in group.said(name)

    wait_until(lambda: all(map(has_joined, new)), limit_s=LIMIT_S)
    return _failed(group, set(names), {*names, *new}, owners, wait_until)


def _failed(
    group: ConsoleGroup,
    dead: set[str],
    members: set[str],
    owners: dict[int, str],
    wait_until: Callable[..., None],
) -> tuple[set[str], set[str]]:
    """When the sessions of the dead have ended. `members` still counted when the others rebalanced."""
    assert dead <= group.members(), "a session has ended too early for this test"
    expected = predicted(owners, dead, members)
    wait_until(lambda: not dead & group.members(), limit_s=LIMIT_S)
    return {name for name in members - dead if FAILED in group.said(name)}, expected


_DONE = {"kill+join": _kill_and_join, "kill+leave": _kill_and_leave, "restart-all": _restart_all}
