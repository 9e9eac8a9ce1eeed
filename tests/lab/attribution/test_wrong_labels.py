"""Traffic that is counted to another group, and mappings that stay: live, by plan."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import aiokafka
import confluent_kafka as ck
import pytest

from kelpie.attribution.counters import AMBIGUOUS
from kelpie.attribution.plan import Plan
from tests.lab.attribution.live import TOPIC, A, B, C, Live, hastened, live
from tests.lab.counted import Reader, consumer

pytestmark = pytest.mark.real

WaitUntil = Callable[..., None]

GROUP, APP = "billing", "app-1"
_TRIES = 5
_HASTY_RECONCILED = hastened("reconciled", interval_ms=300, grace_ms=600, misses_are_read_again_after_ms=300)


@contextmanager
def _last_writer(lab: Live, plan: str) -> Iterator[Reader]:
    """A member of the second group. librdkafka may ask for its coordinator on the connection to the bootstrap
    address, and drop that: the plan `connection` then deletes the node. The member is then opened again.
    """
    for _ in range(_TRIES):
        with lab.consumer("second", "shared", "payments") as reader:
            if plan != "connection" or lab.mappings:
                yield reader
                return
    pytest.fail(f"librdkafka dropped the connection on which it had asked {_TRIES} times")


@pytest.mark.parametrize("plan", ["connection", "join", "coordinator", "reconciled", "incarnation"])
def test_two_groups_have_one_client_id(plan: str, zookeeper: str) -> None:
    """On KoP's tree the last writer has the traffic of both. `incarnation` tells them by their partitions."""
    with live(plan, zookeeper) as lab:
        lab.cluster.create_topic("payments", assignment={0: [A, C]})
        with lab.consumer("first", "shared") as first, _last_writer(lab, plan) as second:
            assert lab.mappings == ({} if plan == "incarnation" else {"shared": "second"})
            lab.send(10)
            lab.send(5, "payments")
            first.read(10)
            second.read(5)
            second.poll(lambda: sum(lab.counted.values()) == 15)
            assert lab.counted == ({"first": 10, "second": 5} if plan == "incarnation" else {"second": 15})


def test_two_groups_with_one_client_id_on_one_partition_are_ambiguous(zookeeper: str) -> None:
    """Nothing tells them apart, and the label says so: it is not guessed."""
    with (
        live(hastened("incarnation", hold_ms=500), zookeeper) as lab,
        lab.consumer("first", "shared") as first,
        lab.consumer("second", "shared") as second,
    ):
        lab.send(10)
        first.read(10)
        second.read(10)
        second.poll(lambda: lab.counted)
        second.poll(lambda: sum(lab.counted.values()) == 20)
        assert lab.counted == {AMBIGUOUS: 20}


@contextmanager
def _process(lab: Live, group: str, client_id: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A consumer in a process of its own, to kill."""
    program = f"""
import confluent_kafka as ck
consumer = ck.Consumer({{
    "bootstrap.servers": {lab.cluster.bootstrap_servers!r}, "group.id": {group!r}, "client.id": {client_id!r},
    "session.timeout.ms": 1000, "heartbeat.interval.ms": 100, "log_level": 0,
}})
consumer.subscribe([{TOPIC!r}])
while True:
    consumer.poll(1)
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def _read_without_group(bootstrap: str, client_id: str, count: int) -> None:
    """With aiokafka: librdkafka's consumers always have a group."""
    reader = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=bootstrap, client_id=client_id, auto_offset_reset="earliest"
    )
    reader.assign([aiokafka.TopicPartition(TOPIC, 0)])
    await reader.start()
    try:
        for _ in range(count):
            await asyncio.wait_for(reader.getone(), 20)
    finally:
        await reader.stop()


@pytest.mark.parametrize(
    ("plan", "label"),
    [
        ("connection", GROUP),
        ("join", GROUP),
        ("coordinator", ""),
        (hastened("incarnation", hold_ms=500), ""),
    ],
    ids=["connection", "join", "coordinator", "incarnation"],
)
def test_kill_9_leaves_a_mapping(
    plan: str | type[Plan], label: str, zookeeper: str, wait_until: WaitUntil
) -> None:
    """A stranger with the client id of a dead consumer counts for the dead group, unless a member expires.

    Brokers and client are killed. The next coordinator has the member from its log, and expires it.
    """
    with live(plan, zookeeper) as lab:
        wall = lab.cluster.wall_off(C)  # The client asks A or B for its coordinator.
        with _process(lab, GROUP, APP) as process:
            lab.cluster.wait_for_group(GROUP, members=1)
            if label:
                wait_until(lambda: lab.mappings)  # ZooKeeper may take longer than the group.
            # If it ran, it might ask C now, and with the end of that connection the mapping would go.
            process.send_signal(signal.SIGSTOP)
            wall.lift()
            for node in (A, B):
                lab.cluster.kill(node)
            process.send_signal(signal.SIGKILL)
        lab.cluster.wait_until(lambda state: state["topics"][TOPIC][0]["leader"] == C)
        if label:
            assert lab.mappings == {APP: GROUP}
        else:
            lab.cluster.wait_for_group(GROUP, "Empty")
            wait_until(lambda: not lab.mappings)
            wait_until(lambda: time.time() > _removed_s(lab) + 1.1)
        lab.send(10)
        asyncio.run(_read_without_group(lab.cluster.bootstrap_servers, APP, 10))
        wait_until(lambda: lab.counted)
        assert lab.counted == {label: 10}


def _removed_s(lab: Live) -> float:
    """When the last member was removed; brokers grant each other's clocks a second."""
    return max((json.loads(claim).get("until", 0) / 1000 for claim in lab.claims.values()), default=0.0)


async def _one_does_not_rejoin(lab: Live, seen: Callable[[], None]) -> None:
    """Two members; the second one stands still while the first one joins again, and is removed.

    With aiokafka: its rebalance timeout can be shorter than its session. So the member is removed at the end
    of the rebalance, and not because its session expired.
    """
    members = [
        aiokafka.AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=lab.cluster.bootstrap_servers,
            group_id=GROUP,
            client_id=client_id,
            rebalance_timeout_ms=500,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=100,
        )
        for client_id in ("alive", "silent", "late")
    ]
    try:
        for member in members[:2]:
            await member.start()
        await asyncio.to_thread(lab.cluster.wait_for_group, GROUP, members=2)
        silence = await asyncio.to_thread(lab.cluster.stall, client="silent")
        assigned = await asyncio.to_thread(lab.cluster.observe, api="SyncGroup", client="late")
        await members[2].start()
        await asyncio.to_thread(assigned.wait)
        await asyncio.to_thread(lab.cluster.wait_for_group, GROUP, members=2)
        await asyncio.to_thread(seen)
        await asyncio.to_thread(silence.lift)
    finally:
        for member in members:
            await asyncio.wait_for(member.stop(), 20)


def test_a_member_that_does_not_rejoin_leaves_its_mapping(zookeeper: str) -> None:
    """Its coordinator removes it on a way that does not delete: a leak of the second plan."""
    with live("coordinator", zookeeper) as lab:

        def seen() -> None:
            assert lab.mappings == {"alive": GROUP, "silent": GROUP, "late": GROUP}

        asyncio.run(_one_does_not_rejoin(lab, seen))


@pytest.mark.parametrize("plan", [_HASTY_RECONCILED, "incarnation"], ids=["reconciled", "incarnation"])
def test_the_mapping_of_a_member_that_did_not_rejoin_goes(
    plan: str | type[Plan], zookeeper: str, wait_until: WaitUntil
) -> None:
    """Reconciliation finds it without a member; `incarnation` marks it as removed at once."""
    with live(plan, zookeeper) as lab:

        def seen() -> None:
            if plan == "incarnation":
                claims = {path.rpartition("/")[2]: json.loads(value) for path, value in lab.claims.items()}
                removed = [claim for name, claim in claims.items() if "@silent-" in name or "until" in claim]
                assert len(removed) == 1
                assert "until" in removed[0]
            else:
                wait_until(lambda: lab.mappings == {"alive": GROUP, "late": GROUP})

        asyncio.run(_one_does_not_rejoin(lab, seen))


def _assigned(lab: Live, reader: Reader) -> None:
    """It assigns itself the partition from its beginning, and never joins."""
    reader.client.assign([ck.TopicPartition(TOPIC, 0, 0)])
    reader.poll(lambda: reader.knows_coordinator)


@pytest.mark.parametrize(("plan", "label"), [("join", ""), ("coordinator", GROUP), ("incarnation", GROUP)])
def test_a_consumer_only_assigns(plan: str, label: str, zookeeper: str, wait_until: WaitUntil) -> None:
    """It never joins, so the first plan never knows it. The second does, and never forgets it."""
    with live(plan, zookeeper) as lab:
        with consumer(lab.cluster, GROUP, APP) as reader:
            _assigned(lab, reader)
            lab.read(reader, 10, label)
            lab.move_partition()
            lab.read(reader, 10, label)
        assert lab.mappings == ({APP: GROUP} if plan == "coordinator" else {})


def test_reconciliation_takes_a_consumer_that_only_assigns_for_a_leak(
    zookeeper: str, wait_until: WaitUntil
) -> None:
    """No leak stays, but the label is lost on the next connection."""
    with live(_HASTY_RECONCILED, zookeeper) as lab, consumer(lab.cluster, GROUP, APP) as reader:
        _assigned(lab, reader)
        lab.read(reader, 10, GROUP)
        reader.poll(lambda: not lab.mappings)
        lab.move_partition()
        lab.read(reader, 10, "")


def test_the_hint_of_a_consumer_that_only_assigns_ages_out(zookeeper: str, wait_until: WaitUntil) -> None:
    """While it reads, its brokers renew the hint. Afterwards nothing of it stays."""
    with live(hastened("incarnation", hint_ms=1_500, sweep_ms=500), zookeeper) as lab:
        with consumer(lab.cluster, GROUP, APP) as reader:
            _assigned(lab, reader)
            lab.read(reader, 10, GROUP)
            first = set(lab.claims)
            reader.poll(lambda: _reads_on(lab, reader) and set(lab.claims).isdisjoint(first))
            assert lab.claims
        wait_until(lambda: not lab.claims)


def _reads_on(lab: Live, reader: Reader) -> bool:
    lab.read(reader, 1, GROUP)
    return True
