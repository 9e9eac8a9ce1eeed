"""The survey on healthy clusters and on broken ones, in the lab."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from kelpie.client import negotiation
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import SurveyOptions, survey
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.errors import ErrorCode
from kelpie.lab import Cluster, virtual_time
from kelpie.lab.memory_network import MemoryNetwork
from kelpie.lab.virtual_time import VirtualLoop
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.observations import OFFSETS_TOPIC, Observations
from tests.client.inhabitants import Inhabitants

PARTITIONS = 6
"""Of the offsets topic, with a single replica each: who loses a broker loses coordinators."""
GROUPS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
FAST: dict[str, Any] = {"request_timeout_s": 0.5, "connect_timeout_s": 0.5}


def _run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60.0):
            await test()

    asyncio.run(limited())


NETWORK = MemoryNetwork()


def _run_without_waiting(test: Callable[[], Awaitable[None]]) -> None:
    """The same on a virtual clock: time limits pass at once."""

    async def limited() -> None:
        async with asyncio.timeout(60.0):
            await test()

    virtual_time.run(limited())


def _cluster(brokers: int, **options: Any) -> Cluster:
    """On sockets, or for a virtual clock inside the process."""
    is_virtual = isinstance(asyncio.get_running_loop(), VirtualLoop)
    return Cluster(brokers, network=NETWORK if is_virtual else None, **options)


def _settings(cluster: Cluster, **options: Any) -> Settings:
    """To reach a cluster that `_cluster` has made."""
    is_virtual = isinstance(asyncio.get_running_loop(), VirtualLoop)
    return replace(Settings.of(cluster.bootstrap_servers, **options), network=NETWORK if is_virtual else None)


@asynccontextmanager
async def _inhabited(
    persona: str = "4.3", brokers: int = 3, **others: Any
) -> AsyncIterator[tuple[Cluster, Inhabitants]]:
    """A cluster with the topic orders, and groups that have committed in it."""
    config = {"offsets.topic.replication.factor": 1, "group.initial.rebalance.delay.ms": 0}
    async with _cluster(
        brokers, persona=persona, offsets_partitions=PARTITIONS, config=config, **others
    ) as cluster:
        cluster.create_topic("orders", 3, replication=1)
        async with await Nodes.open(_settings(cluster)) as nodes:
            living = Inhabitants(nodes)
            for partition in range(3):
                await living.produce("orders", partition, 10)
            for group in GROUPS:
                await living.commit(group, "orders", {0: 4, 1: 5, 2: 6})
            yield cluster, living


@pytest.fixture
def hurry(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """0.9 is known by its silence; here nothing else is silent, so it need not last."""
    if request.getfixturevalue("persona") == "0.9":
        monkeypatch.setattr(negotiation, "PATIENCE_S", 0.05)
        monkeypatch.setattr(negotiation, "GRACE_S", 0.05)


def _led_by(cluster: Cluster, node: int) -> set[str]:
    """The groups that a broker coordinates, by the lab's own truth."""
    states = cluster.describe()["topics"][OFFSETS_TOPIC]
    led = {entry["partition"] for entry in states if entry["leader"] == node}
    return {group for group in GROUPS if partition_for(group, PARTITIONS) in led}


def _states(seen: Observations) -> dict[str, str]:
    return {row.group: row.state for row in seen.states if row.error is ErrorCode.NONE}


def _unasked(seen: Observations, kind: str) -> dict[str, str]:
    return {row.name: row.reason for row in seen.unasked if row.kind == kind}


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("persona", ["4.3", "3.9", "2.8", "0.9"])
def test_a_healthy_cluster_is_told_in_full(persona: str) -> None:
    """Every release has its own way to be asked; what comes out is the same."""

    async def test() -> None:
        async with _inhabited(persona) as (cluster, living):
            member = await living.join("readers", "orders", 3)
            await living.commit("readers", "orders", {0: 7}, member=member)
            seen = await survey(Settings.of(cluster.bootstrap_servers), known=["ghost", *GROUPS])
            assert {row.node_id: row.alive for row in seen.brokers} == {1: True, 2: True, 3: True}
            assert {row.release for row in seen.brokers} == {{"4.3": "4.x"}.get(persona, persona)}
            views = {(row.told_by, row.topic) for row in seen.partitions}
            assert views == {(node, topic) for node in (1, 2, 3) for topic in (OFFSETS_TOPIC, "orders")}
            listed = {group for row in seen.listings for group in row.groups}
            # Kafka 0.9 lists groups with members only.
            assert listed == ({"readers"} if persona == "0.9" else {"readers", *GROUPS})
            assert _states(seen)["readers"] == "Stable"
            state = next(row for row in seen.states if row.group == "readers")
            assert state.members[0].subscribed == ("orders",)
            assert state.members[0].assigned == tuple(TopicPartition("orders", at) for at in range(3))
            offsets = {(row.group, row.partition): row.offset for row in seen.committed}
            expected = {(group, at): 4 + at for group in GROUPS for at in range(3)}
            assert offsets == expected | {("readers", 0): 7}
            told = {row.group for row in seen.answers if row.asked == "OffsetFetch" and not row.error}
            assert told == {"ghost", "readers", *GROUPS}
            now = [row for row in seen.ends if "timestamps" not in row.source]
            assert {(row.partition, row.earliest, row.latest, row.stable) for row in now} == {
                (at, 0, 10, 10) for at in range(3)
            }
            if persona == "0.9":
                assert _unasked(seen, "settings").keys() == {"all"}
                assert len(seen.unasked) == 1
            else:
                settings = {(row.of, row.name): row.value for row in seen.settings}
                assert settings["broker 1", "offsets.topic.replication.factor"] == "1"
                assert settings["topic orders", "cleanup.policy"] == "delete"
                assert seen.unasked == []

    _run(test)


def test_a_new_cluster_leaves_nothing_unasked() -> None:
    """It has no offsets topic yet; that this has no settings either is no news."""

    async def test() -> None:
        async with Cluster(1, offsets_partitions=PARTITIONS) as cluster:
            seen = await survey(Settings.of(cluster.bootstrap_servers))
            assert seen.unasked == []
            assert {row.of for row in seen.settings} == {"broker 1"}

    _run(test)


def test_requests_grow_with_brokers_not_with_groups() -> None:
    """Ten times as many groups cost not one request more."""

    async def count(cluster: Cluster) -> dict[str, int]:
        async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
            await nodes.introductions()
            seen = await survey(nodes)
            assert seen.unasked == []
            return dict(nodes.counters.by_api)

    async def test() -> None:
        async with _inhabited() as (cluster, living):
            few = await count(cluster)
            for number in range(60):
                await living.commit(f"group-{number}", "orders", {0: 1})
            assert await count(cluster) == few
            assert "FindCoordinator" not in few
            assert few["DescribeGroups"] == few["OffsetFetch"] == 3

    _run(test)


def test_many_groups_are_asked_for_in_pieces() -> None:
    """An answer about all groups of a large cluster at once would be too large for anybody."""

    async def test() -> None:
        async with _inhabited(brokers=1) as (cluster, _):
            settings = Settings.of(cluster.bootstrap_servers)
            whole = await survey(settings)
            pieces = await survey(
                settings, options=SurveyOptions(groups_per_request=1, partitions_per_request=1)
            )
            assert {row[:6] for row in pieces.committed} == {row[:6] for row in whole.committed}
            assert _states(pieces) == _states(whole)
            assert len(pieces.ends) == len(whole.ends)

    _run(test)


def test_only_the_groups_that_are_named_are_looked_at() -> None:
    """The listing is whole all the same: who else is hit by an outage must be known."""

    async def test() -> None:
        async with _inhabited() as (cluster, _):
            seen = await survey(Settings.of(cluster.bootstrap_servers), groups=["beta", "nobody"])
            assert _states(seen) == {"beta": "Empty"}
            absent = next(row for row in seen.states if row.group == "nobody")
            assert absent.error is ErrorCode.GROUP_ID_NOT_FOUND
            assert {row.group for row in seen.committed} == {"beta"}
            assert {group for row in seen.listings for group in row.groups} == set(GROUPS)

    _run(test)


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("persona", ["4.3", "2.8", "0.9"])
def test_a_dead_broker_costs_its_own_rows(persona: str) -> None:
    """Its groups have no coordinator, which every living broker confirms; all others are told in full."""

    async def test() -> None:
        async with _inhabited(persona) as (cluster, _):
            hit = _led_by(cluster, 2)
            assert hit, "no group of the test is on broker 2"
            await cluster.kill(2)
            await cluster.wait_until(
                lambda state: all(entry["leader"] != 2 for entry in state["topics"][OFFSETS_TOPIC])
            )
            seen = await survey(Settings.of(cluster.bootstrap_servers, **FAST), known=GROUPS)
            assert {row.node_id: row.alive for row in seen.brokers if row.alive is not None}[1] is True
            assert set(_unasked(seen, "group")) == hit
            assert all("has no leader" in reason for reason in _unasked(seen, "group").values())
            assert {row.group for row in seen.committed} == set(GROUPS) - hit
            lookups = [row for row in seen.answers if row.asked == "FindCoordinator"]
            assert {row.group for row in lookups} == hit
            assert {row.told_by for row in lookups} == {1, 3}
            assert {row.error for row in lookups} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
            # The address was given, so what became of it is told.
            assert any("refused" in reason for reason in _unasked(seen, "broker").values())

    _run(test)


def test_a_broker_that_others_still_list_is_in_doubt() -> None:
    """It died a moment ago, or only we cannot reach it: both are told, the verdict is left to others."""

    async def test() -> None:
        config = {"broker.session.timeout.ms": 60_000, "offsets.topic.replication.factor": 1}
        async with Cluster(3, config=config, offsets_partitions=PARTITIONS) as cluster:
            await cluster.kill(2)
            seen = await survey(Settings.of(cluster.bootstrap_servers, **FAST))
            rows = [row for row in seen.brokers if row.node_id == 2]
            assert [row.alive for row in rows] == [False, None, None]
            assert "refused" in rows[0].reason
            assert {row.source.split(" (")[0] for row in rows[1:]} == {"broker 1", "broker 3"}
            assert "2" in _unasked(seen, "broker")

    _run(test)


def test_a_silent_broker_is_asked_once() -> None:
    """It takes connections and says nothing: one time limit, once, and the others are told in full."""

    async def test() -> None:
        async with _inhabited() as (cluster, _):
            hit = _led_by(cluster, 2)
            assert hit
            cluster.stall(node=2, client="patient")
            settings = _settings(cluster, client_id="patient", **FAST)
            seen = await survey(settings)
            assert {row.node_id for row in seen.brokers if row.alive} == {1, 3}
            assert {row.group for row in seen.committed} == set(GROUPS) - hit
            # Nobody lists them: only who knows them from elsewhere can ask for them.
            assert _unasked(seen, "group") == {}
            assert "2" in _unasked(seen, "broker")
            seen = await survey(settings, known=GROUPS)
            assert set(_unasked(seen, "group")) == hit
            partitions = {name for name in _unasked(seen, "partition") if name.startswith("orders-")}
            assert len(partitions) == 1, "one of three partitions of orders is led by the silent broker"

    _run_without_waiting(test)


def test_a_broker_that_falls_silent_halfway_costs_what_is_left() -> None:
    """It told its groups, and then no offsets; ten more requests would wait ten more time limits."""

    async def test() -> None:
        async with _inhabited() as (cluster, _):
            hit = _led_by(cluster, 2)
            silence = cluster.silence(api="OffsetFetch", node=2, client="patient")
            settings = _settings(cluster, client_id="patient", **FAST)
            seen = await survey(settings, options=SurveyOptions(groups_per_request=1))
            assert silence.hits == 1
            assert hit <= set(_unasked(seen, "group"))
            assert {row.group for row in seen.committed} == set(GROUPS) - hit

    _run_without_waiting(test)


def test_a_leaderless_partition_of_a_topic_costs_its_ends() -> None:
    """Committed offsets are told, and that nobody knows where the log ends."""

    async def test() -> None:
        async with _inhabited() as (cluster, _):
            cluster.make_leaderless("orders", 1)
            seen = await survey(Settings.of(cluster.bootstrap_servers))
            assert _unasked(seen, "partition") == {"orders-1": "orders-1 has no leader."}
            assert {row.partition for row in seen.ends} == {0, 2}
            assert len(seen.committed) == 3 * len(GROUPS)

    _run(test)


def test_a_forbidden_group_costs_its_own_rows() -> None:
    """GROUP_AUTHORIZATION_FAILED for one group must not hide the others."""

    async def test() -> None:
        async with _inhabited() as (cluster, _):
            cluster.fail(ErrorCode.GROUP_AUTHORIZATION_FAILED, api="DescribeGroups", group="gamma")
            cluster.fail(ErrorCode.GROUP_AUTHORIZATION_FAILED, api="OffsetFetch", group="gamma")
            options = SurveyOptions(groups_per_request=1)  # The lab refuses whole requests.
            seen = await survey(Settings.of(cluster.bootstrap_servers), options=options)
            refused = {row.group for row in seen.states if row.error is ErrorCode.GROUP_AUTHORIZATION_FAILED}
            assert refused == {"gamma"}
            told = {row.group: row.error for row in seen.answers if row.asked == "OffsetFetch"}
            assert {group for group, error in told.items() if error} == {"gamma"}
            assert {row.group for row in seen.committed} == set(GROUPS) - {"gamma"}

    _run(test)


def test_a_dispute_is_put_to_every_broker() -> None:
    """A broker that has missed an election names the old leader; the newer epoch counts."""

    async def test() -> None:
        async with _cluster(3, offsets_partitions=PARTITIONS) as cluster:
            cluster.create_topic("orders", 1)
            async with await Nodes.open(_settings(cluster)) as nodes:
                living = Inhabitants(nodes)
                for group in GROUPS:
                    await living.commit(group, "orders", {0: 1})
            moved = _led_by(cluster, 1)
            assert moved
            cluster.freeze_metadata(3)
            await cluster.stop(1)
            seen = await survey(_settings(cluster), known=GROUPS)
            lookups = {
                (row.group, row.told_by): row.node_id
                for row in seen.answers
                if row.asked == "FindCoordinator"
            }
            assert moved <= {group for group, _ in lookups}
            assert {lookups[group, 3] for group in moved} == {1}
            assert 1 not in {lookups[group, 2] for group in moved}
            # Whoever leads now answers, unless it is the one that does not know.
            answered = {row.group for row in seen.states if row.error is ErrorCode.NONE}
            assert answered >= {group for group in moved if lookups[group, 2] == 2}

    _run_without_waiting(test)


def test_a_broker_that_is_cut_off_is_heard_and_not_believed() -> None:
    """It goes on naming itself; its view is told, and its groups have no coordinator all the same."""

    async def test() -> None:
        async with _inhabited() as (cluster, _):
            hit = _led_by(cluster, 2)
            cluster.isolate(2)
            await cluster.wait_until(
                lambda state: all(entry["leader"] != 2 for entry in state["topics"][OFFSETS_TOPIC])
            )
            seen = await survey(Settings.of(cluster.bootstrap_servers), known=GROUPS)
            assert {row.node_id for row in seen.brokers if row.alive} == {1, 2, 3}
            assert {row.leader for row in seen.partitions if row.told_by == 2} >= {2}
            assert set(_unasked(seen, "group")) == hit
            lookups = {(row.told_by, row.node_id) for row in seen.answers if row.asked == "FindCoordinator"}
            assert lookups == {(1, -1), (2, 2), (3, -1)}

    _run(test)


def test_a_coordinator_that_denies_is_looked_up() -> None:
    """The leader by metadata answers NOT_COORDINATOR: then all are asked who is."""

    async def test() -> None:
        async with _inhabited() as (cluster, _):
            hit = _led_by(cluster, 2)
            cluster.fail(ErrorCode.NOT_COORDINATOR, api="DescribeGroups", node=2)
            seen = await survey(_settings(cluster))
            denied = {row.group for row in seen.states if row.error is ErrorCode.NOT_COORDINATOR}
            assert denied == hit
            lookups = [row for row in seen.answers if row.asked == "FindCoordinator"]
            assert {(row.group, row.told_by, row.node_id) for row in lookups} == {
                (group, node, 2) for group in hit for node in (1, 2, 3)
            }

    _run_without_waiting(test)


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("persona", ["4.3", "2.8", "0.9"])
def test_a_cluster_without_an_offsets_topic_stays_without(persona: str) -> None:
    """Looking creates nothing, though old brokers create this topic for whoever asks for it by name."""

    async def test() -> None:
        async with Cluster(2, persona=persona) as cluster:
            seen = await survey(Settings.of(cluster.bootstrap_servers), known=["alpha"])
            rows = [row for row in seen.partitions if row.topic == OFFSETS_TOPIC]
            assert {(row.partition, row.leader, row.error, row.told_by) for row in rows} == {
                (-1, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, node) for node in (1, 2)
            }
            assert "no group has a coordinator" in _unasked(seen, "group")["alpha"]
            assert OFFSETS_TOPIC not in cluster.describe()["topics"]

    _run(test)


def test_nobody_answers() -> None:
    """Also that is an answer: what was tried, and why it failed."""

    async def test() -> None:
        seen = await survey(Settings.of("127.0.0.1:1,127.0.0.1:2"), known={"alpha": "clients/app.log"})
        assert set(_unasked(seen, "broker")) == {"127.0.0.1:1", "127.0.0.1:2"}
        assert seen.known_groups == {"alpha": "clients/app.log"}
        assert seen.brokers == []

    _run(test)


def test_an_open_transaction_is_traced_to_its_producer() -> None:
    """The last stable offset stands before the end: who holds it, since when, under which id."""

    async def test() -> None:
        async with _inhabited() as (cluster, living):
            producer = await living.leave_transaction_open("orders", 2)
            seen = await survey(Settings.of(cluster.bootstrap_servers))
            held = [row for row in seen.ends if row.partition == 2 and "timestamps" not in row.source]
            assert [(row.stable, row.latest) for row in held] == [(10, 13)]
            assert [
                (
                    row.topic,
                    row.partition,
                    row.producer_id,
                    row.started_at_offset,
                    row.transactional_id,
                    row.state,
                )
                for row in seen.transactions
            ] == [("orders", 2, producer, 10, "tx", "Ongoing")]

    _run(test)


def _told_of_transactions(seen: Observations) -> tuple[list[str], list[str]]:
    """Their states, and what is said of partitions that could not be asked."""
    reasons = [row.reason for row in seen.unasked if row.kind == "partition"]
    return [row.state for row in seen.transactions], reasons


def test_a_transaction_that_no_coordinator_knows_is_told_so_by_those_who_may_see_all() -> None:
    """ListTransactions leaves out, without a word, what the caller may not describe."""

    async def test() -> None:
        async with _inhabited() as (cluster, living):
            topic = "__transaction_state"
            cluster.create_topic("held", assignment={0: (2, 3)})
            cluster.create_topic(topic, config={"cleanup.policy": "compact"}, assignment={0: (1, 2)})
            cluster.shrink_isr(topic, 0, [1])
            await living.leave_transaction_open("held")
            for group in GROUPS:
                await living.commit(group, "held", {0: 0})
            await cluster.kill(1)
            await cluster.wait_until(lambda state: state["topics"][topic][0]["leader"] < 0)
            cluster.elect(topic, 0, unclean=True)
            seen = await survey(Settings.of(cluster.bootstrap_servers))
            assert _told_of_transactions(seen)[0] == [""]
            refusal = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            cluster.fail(refusal, api="DescribeTransactions")
            refused = await survey(Settings.of(cluster.bootstrap_servers))
            hidden, reasons = _told_of_transactions(refused)
            assert hidden == ["?"]
            assert any("may not describe every transactional id" in reason for reason in reasons)

    _run(test)


def test_a_transaction_whose_coordinator_has_no_leader_is_not_told_as_unknown() -> None:
    """No broker lists the transactions of a partition of __transaction_state without a leader."""

    async def test() -> None:
        async with _inhabited() as (cluster, living):
            await living.leave_transaction_open("orders", 2)
            topic = "__transaction_state"
            count = len(cluster.describe()["topics"][topic])
            home = partition_for("tx", count)
            cluster.make_leaderless(topic, home)
            seen = await survey(Settings.of(cluster.bootstrap_servers))
            states, reasons = _told_of_transactions(seen)
            assert states == ["?"]
            assert any(f"nobody answers for partition {home} of {topic}" in reason for reason in reasons)

    _run(test)


def test_a_commit_in_an_open_transaction_is_told_as_unstable() -> None:
    """Its offset may be replaced any moment; the producer that could do so is named."""

    async def test() -> None:
        async with _inhabited() as (cluster, living):
            producer = await living.commit_in_open_transaction("alpha", "orders", 9)
            seen = await survey(Settings.of(cluster.bootstrap_servers))
            unstable = [(row.group, row.partition, row.offset) for row in seen.committed if row.error]
            assert unstable == [("alpha", 0, -1)]
            assert {(row.topic, row.partition, row.producer_id, row.state) for row in seen.transactions} == {
                (OFFSETS_TOPIC, partition_for("alpha", PARTITIONS), producer, "Ongoing")
            }

    _run(test)


def test_the_end_of_an_older_epoch_is_asked_for() -> None:
    """A commit of an earlier leader's epoch: the leader of today says where that epoch ended."""

    async def test() -> None:
        async with _inhabited() as (cluster, living):
            await living.topic("payments", 1, 3)
            await living.produce("payments", 0, 5)
            await living.commit("alpha", "payments", {0: 5}, epoch=0)
            leader = cluster.describe()["topics"]["payments"][0]["leader"]
            await cluster.restart(leader)
            await living.produce("payments", 0, 2)
            seen = await survey(Settings.of(cluster.bootstrap_servers))
            rows = [
                (row.asked, row.leader_epoch, row.end) for row in seen.epoch_ends if row.topic == "payments"
            ]
            assert rows == [(0, 0, 5)]

    _run(test)


def test_logs_are_told_as_they_were() -> None:
    """One survey gives rates: where the log ended a minute ago, by the timestamps of its records."""

    async def test() -> None:
        async with _inhabited() as (cluster, _):
            options = SurveyOptions(look_back_s=(3600,))
            seen = await survey(Settings.of(cluster.bootstrap_servers), options=options)
            past = [row for row in seen.ends if "timestamps" in row.source and row.partition == 0]
            now = [row for row in seen.ends if "timestamps" not in row.source and row.partition == 0]
            # All records are younger than an hour: then, the log was empty.
            assert [row.latest for row in past] == [0]
            assert [row.latest for row in now] == [10]
            assert past[0].at is not None
            assert now[0].at is not None
            assert past[0].at < now[0].at
            assert now[0].last_written is not None

    _run(test)


@pytest.mark.parametrize("persona", ["4.3", "0.9"])
@pytest.mark.usefixtures("hurry")
def test_sizes_of_logs_are_asked_on_request(persona: str) -> None:
    """With the settings that say what they mean. Kafka before 1.0 has no such question: one row says so."""

    async def test() -> None:
        async with _inhabited(persona) as (cluster, _):
            settings = Settings.of(cluster.bootstrap_servers)
            unasked = (await survey(settings, known=GROUPS)).sizes
            assert {row.topic for row in unasked} == (set() if persona == "0.9" else {OFFSETS_TOPIC})
            seen = await survey(settings, known=GROUPS, options=SurveyOptions(sizes=True))
            if persona == "0.9":
                assert seen.sizes == []
                assert _unasked(seen, "sizes").keys() == {"all"}
            else:
                sizes = {row.name: row for row in seen.sizes if row.topic != OFFSETS_TOPIC}
                assert sizes.keys() == {row.name for row in seen.ends if row.earliest >= 0}
                assert all(row.size > 0 and row.node > 0 for row in sizes.values() if row.topic == "orders")
                policies = {row.topic: row.cleanup_policy for row in sizes.values()}
                assert policies["orders"] == "delete"
                assert _unasked(seen, "sizes") == {}

    _run(test)


def test_workers_of_connect_are_described_as_such() -> None:
    """Their bytes are connectors and tasks: they are not read as partitions, and no rule finds fault."""

    async def test() -> None:
        async with _inhabited() as (_, living):
            # As the worker of Connect sends it: version 1, the address of its REST server, an offset.
            worker = b"\x00\x01\x00\x15http://127.0.0.1:8083\x00\x00\x00\x00\x00\x00\x00\x01"
            await living.join_as("connect-cluster", "connect", "sessioned", worker, b"\x00\x02\xff\x00\x01")
            seen = await survey(living.nodes, groups=["connect-cluster"])
        state = next(row for row in seen.states if row.group == "connect-cluster")
        assert (state.state, state.protocol_type, state.protocol) == ("Stable", "connect", "sessioned")
        assert state.is_connect
        assert [(member.subscribed, member.assigned) for member in state.members] == [(None, None)]
        assert seen.unasked == []
        diagnosis = diagnose_all(*build(seen, groups=["connect-cluster"]))
        assert {finding.code for finding in diagnosis.findings if finding.group} == set()
        assert {question.code for question in diagnosis.open} & {
            "KLP207",
            "KLP208",
            "KLP309",
            "KLP310",
        } == set()

    _run(test)


def test_the_past_of_tiered_topics_is_not_asked_for() -> None:
    """To find a time in a remote store blocks a broker's request handler."""

    async def test() -> None:
        async with _inhabited() as (cluster, living):
            cluster.create_topic("archive", 1, replication=1, config={"remote.storage.enable": "true"})
            await living.produce("archive", 0, 3)
            await living.commit("alpha", "archive", {0: 1})
            seen = await survey(Settings.of(cluster.bootstrap_servers))
            past = {row.topic for row in seen.ends if row.source.endswith("by timestamps")}
            assert past == {"orders"}
            assert [row.latest for row in seen.ends if row.topic == "archive"] == [3]

    _run(test)
