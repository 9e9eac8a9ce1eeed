"""Real console consumers of 0.8.2.2 fail exactly when the formula says so, and as often as simulated."""

import random
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
FAILED = "ConsumerRebalanceFailedException"


def predicted(owners: dict[int, str], victim: str, members: set[str]) -> set[str]:
    """Who is given, with the dead one still registered, a partition that the dead one owns."""
    held = {partition for partition, owner in owners.items() if owner == victim}
    threads = {member: {"t": 1} for member in members}
    return {
        member
        for member in members - {victim}
        if held & {partition.partition for partition in assign(member, threads, {"t": range(PARTITIONS)})}
    }


@pytest.mark.parametrize("members", [2, 4])
def test_kill_and_join_fail_on_real_0_8_2_2_as_predicted_and_as_simulated(
    members: int, real_kafka: Callable[..., RealCluster], tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    """The runs of the facts, made again: a random victim, and a new member with a random name."""
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
            group = ConsoleGroup(cluster, name, folder, TreeReader(client, hosts, 10), stack)
            failed, expected = _kill_and_join(group, members, chance, wait_until)
        assert failed == expected
        failed_runs += bool(failed)
    settings = GroupSettings(
        members=members,
        partitions=PARTITIONS,
        session_timeout_ms=SETTINGS["zookeeper.session.timeout.ms"],
        retries=SETTINGS["rebalance.max.retries"],
        backoff_ms=SETTINGS["rebalance.backoff.ms"],
    )
    chances = (random.Random(seed) for seed in range(60))
    share = wilson(failed_runs, RUNS)
    assert share.low <= run_trials(settings, EVENTS["kill+join"], chances).failed.observed <= share.high


def _kill_and_join(
    group: ConsoleGroup, members: int, chance: random.Random, wait_until: Callable[..., None]
) -> tuple[set[str], set[str]]:
    """Members that failed, and those that were expected to."""
    names = [f"{chance.randrange(1 << 32):08x}" for _ in range(members + 1)]
    joining = names.pop()
    processes = {name: group.start(name) for name in names}
    wait_until(lambda: len(group.shares()) == members and len(group.owners()) == PARTITIONS, limit_s=LIMIT_S)
    assert not [name for name in names if FAILED in group.said(name)], "a start has failed by itself"
    owners = group.owners()
    victim = names[chance.randrange(members)]
    processes[victim].kill()
    group.start(joining)
    wait_until(lambda: joining in group.members(), limit_s=LIMIT_S)
    assert victim in group.members(), "the session has ended too early for this test"
    expected = predicted(owners, victim, {*names, joining})
    wait_until(lambda: victim not in group.members(), limit_s=LIMIT_S)
    failed = {name for name in (*names, joining) if FAILED in group.said(name)}
    return failed, expected
