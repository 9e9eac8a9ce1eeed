"""`kelpie probe` as a person uses it: the way of a consumer, and the step at which it ends."""

import argparse
import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kelpie.cli import main, probe
from kelpie.cli.command import CommandError
from kelpie.client.consumer import Consumer
from kelpie.client.settings import Settings
from kelpie.client.survey import survey
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.real.cluster import RealCluster
from tests.client.consumer.producing import produce
from tests.client.consumer.reading import read

TOPIC = "orders"
O0 = TopicPartition(TOPIC, 0)
OFFSETS = "__consumer_offsets"
_CONFIG = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 100}


def _probe(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="kelpie")
    probe.register(parser.add_subparsers(required=True))
    parsed = parser.parse_args(["probe", *arguments])
    status: int = parsed.run(parsed)
    return status


def _use(bootstrap: str, group: str, topic: str = TOPIC, **options: Any) -> None:
    """A consumer has read two of three records and committed that."""

    async def play() -> None:
        settings = Settings.of(bootstrap)
        await produce(settings, TopicPartition(topic, 0), ["a", "b", "c"])
        given = {"auto_offset_reset": "earliest", "session_timeout_ms": 6_000, **options}
        async with Consumer(settings, group, [topic], **given) as consumer:
            await read(consumer, 3)
            await consumer.commit({TopicPartition(topic, 0): 2})

    asyncio.run(play())


@pytest.fixture(scope="module")
def _shared() -> Iterator[SyncCluster]:
    with SyncCluster(3, config=_CONFIG) as cluster:
        cluster.create_topic(TOPIC, 1, 1)
        _use(cluster.bootstrap_servers, "billing")
        yield cluster


@pytest.fixture
def lab(_shared: SyncCluster) -> Iterator[SyncCluster]:
    """A healthy cluster with a group `billing`; faults of a test end with it."""
    yield _shared
    for fault in _shared.faults:
        fault.lift()


def _failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The chapter that fails."""
    assert _probe(*arguments, "--json", "--timeout", "0.6") == 1
    journey = json.loads(capsys.readouterr().out)
    assert journey["reached"] is False
    (chapter, *_) = [chapter for chapter in journey["chapters"] if chapter["verdict"] == "failed"]
    assert chapter["name"] == journey["failed"]
    assert chapter["why"]
    assert chapter["needed"]
    found: dict[str, Any] = chapter
    return found


def test_healthy_way_is_told_to_its_end(lab: SyncCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """From the bootstrap address to the next record, in 80 columns."""
    assert _probe("-b", lab.bootstrap_servers, "billing") == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert f"billing belongs to partition {partition_for('billing', 50)} of 50" in said
    assert "orders-0 at 2 (the committed offset)." in said
    assert "1 offsets to come" in said
    assert "FAILED" not in said
    assert said.endswith("A consumer of billing gets to its next record in its partition.\n")


def test_every_request_is_told_on_request(lab: SyncCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """What was asked, of whom, what came, how long it took."""
    assert _probe("-b", lab.bootstrap_servers, "billing", "-v") == 0
    said = " ".join(capsys.readouterr().out.split())
    for request in (
        "FindCoordinator(billing) to",
        "OffsetFetch(billing: orders-0) to",
        "Fetch(orders-0 from 2)",
    ):
        assert request in said


def test_group_is_not_touched(lab: SyncCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """No join, no commit; and the scratch group is gone afterwards."""
    before = lab.describe()["groups"]
    with lab.observe(group="billing") as watched:
        assert _probe("-b", lab.bootstrap_servers, "billing") == 0
    asked = {type(observed.request).__name__ for observed in watched.requests}
    assert asked <= {
        "FindCoordinatorRequest",
        "DescribeGroupsRequest",
        "ConsumerGroupDescribeRequest",
        "OffsetFetchRequest",
    }
    assert lab.describe()["groups"] == before
    assert "kelpie-probe-" in capsys.readouterr().out


def test_scratch_group_lives_on_the_same_partition(lab: SyncCluster) -> None:
    """Same coordinator, same log: what holds for it holds for the group."""
    with lab.observe(group="kelpie-probe-*") as watched:
        assert _probe("-b", lab.bootstrap_servers, "billing") == 0
    groups = {getattr(observed.request, "group_id", "") for observed in watched.requests} - {""}
    assert {partition_for(group, 50) for group in groups} == {partition_for("billing", 50)}


def test_nothing_is_written_without_a_join(lab: SyncCluster) -> None:
    """--no-join only reads."""
    with lab.observe(api="JoinGroup") as joins, lab.observe(api="OffsetCommit") as commits:
        assert _probe("-b", lab.bootstrap_servers, "billing", "--no-join") == 0
    assert not joins.requests
    assert not commits.requests


def test_join_under_a_given_name_is_a_real_one(lab: SyncCluster) -> None:
    """The explicit wish: that group is joined, and left again."""
    with lab.observe(api="JoinGroup", group="visitors") as joins:
        assert _probe("-b", lab.bootstrap_servers, "billing", "--join", "visitors") == 0
    assert joins.requests


def test_topic_alone_is_probed_with_a_scratch_group(
    lab: SyncCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a new group would do."""
    assert _probe("-b", lab.bootstrap_servers, "--topic", TOPIC, "--reset", "earliest") == 0
    assert "orders-0 at 0 (nothing committed; auto.offset.reset=earliest)." in capsys.readouterr().out


@pytest.mark.parametrize("persona", ["0.9", "2.8", "4.3"])
def test_cluster_without_offsets_topic_stays_so(persona: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Asking for a coordinator would create it; looking must not change the cluster."""
    with SyncCluster(1, persona=persona) as cluster:
        chapter = _failed(capsys, "-b", cluster.bootstrap_servers, "billing")
        assert chapter["name"] == "offsets-partition"
        assert "There is no topic __consumer_offsets" in chapter["said"][0]
        assert OFFSETS not in cluster.describe()["topics"]


def test_leaderless_offsets_partition_is_named(lab: SyncCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """The group's own partition, its replicas, and what the consumer hears: 15."""
    number = partition_for("billing", 50)
    with lab.make_leaderless(OFFSETS, number):
        assert _probe("-b", lab.bootstrap_servers, "billing", "--timeout", "0.6") == 1
        said = capsys.readouterr().out
        assert "No broker leads it" in said
        assert "15 COORDINATOR_NOT_AVAILABLE" in said
        assert f"a leader for {OFFSETS}-{number}" in " ".join(said.split())
        assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize(
    ("fault", "name", "text"),
    [
        ({"error": 30, "api": "FindCoordinator"}, "coordinator", "30 GROUP_AUTHORIZATION_FAILED"),
        ({"error": 14, "api": "DescribeGroups"}, "group", "14 COORDINATOR_LOAD_IN_PROGRESS"),
        ({"error": 81, "api": "JoinGroup"}, "join", "81 GROUP_MAX_SIZE_REACHED"),
        ({"error": 15, "api": "SyncGroup"}, "join", "15 COORDINATOR_NOT_AVAILABLE"),
        ({"error": 30, "api": "OffsetFetch"}, "positions", "30 GROUP_AUTHORIZATION_FAILED"),
        ({"error": 29, "api": "Fetch"}, "records", "29 TOPIC_AUTHORIZATION_FAILED"),
        ({"error": 6, "api": "Fetch"}, "records", "6 NOT_LEADER_OR_FOLLOWER"),
    ],
)
def test_step_that_fails_is_named_with_its_error(
    lab: SyncCluster,
    capsys: pytest.CaptureFixture[str],
    fault: dict[str, Any],
    name: str,
    text: str,
) -> None:
    """Each on its own, while all before it goes well."""
    with lab.fail(fault["error"], api=fault["api"]):
        chapter = _failed(capsys, "-b", lab.bootstrap_servers, "billing", "--topic", TOPIC)
    assert chapter["name"] == name
    assert text in chapter["why"]


def test_leaderless_partition_has_no_position(lab: SyncCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a commit the leader must say where to begin, and there is none."""
    lab.create_topic("lost", 1, 1)
    with lab.make_leaderless("lost", 0):
        chapter = _failed(capsys, "-b", lab.bootstrap_servers, "billing", "--topic", "lost")
    assert chapter["name"] == "positions"
    assert "lost-0" in chapter["why"]


def test_committed_offset_that_is_gone_is_told(lab: SyncCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Deleted by retention, say: the policy decides, and the offset that was left is named."""

    async def commit() -> None:
        settings = Settings.of(lab.bootstrap_servers)
        async with Consumer(settings, "late", partitions=[O0]) as consumer:
            await consumer.commit({O0: 77})

    asyncio.run(commit())
    assert _probe("-b", lab.bootstrap_servers, "late", "--reset", "earliest") == 0
    assert "orders-0 at 0 (no record at 77; auto.offset.reset=earliest)." in capsys.readouterr().out
    chapter = _failed(capsys, "-b", lab.bootstrap_servers, "late", "--reset", "none")
    assert "no offset 77" in chapter["why"]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [(("nobody",), "topics"), (("billing", "--topic", "nothere"), "topics")],
)
def test_nothing_to_read_is_said(
    lab: SyncCluster, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], name: str
) -> None:
    """A group that reads nothing, a topic that does not exist: neither is created."""
    assert _failed(capsys, "-b", lab.bootstrap_servers, *arguments)["name"] == name
    assert "nothere" not in lab.describe()["topics"]


def test_cluster_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Every address with its reason."""
    chapter = _failed(capsys, "-b", "127.0.0.1:1", "billing")
    assert chapter["name"] == "cluster"
    assert "refused the connection" in chapter["why"]


@pytest.mark.parametrize(
    "arguments",
    [("-b", "127.0.0.1:1"), ("billing",), ("-b", "nowhere", "billing"), ("-b", "127.0.0.1:1", "")],
)
def test_misunderstandings_are_mended_by_the_message(arguments: tuple[str, ...]) -> None:
    """Status 2, and what to write instead."""
    with pytest.raises(CommandError) as raised:
        _probe(*arguments)
    assert raised.value.status == 64


@pytest.mark.parametrize("arguments", [("g", "--reset", "never"), ("g", "--timeout", "0"), ("g", "--join")])
def test_options_that_cannot_be_are_refused(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """By argparse, with status 64 and the choices that there are."""
    with pytest.raises(SystemExit) as ended:
        main(["probe", "-b", "127.0.0.1:1", *arguments])
    assert ended.value.code == 64
    assert "error:" in capsys.readouterr().err


@pytest.mark.real
@pytest.mark.parametrize(
    ("version", "protocol"), [("4.3.1", "classic"), ("4.3.1", "consumer"), ("0.9.0.1", "classic")]
)
def test_way_on_real_kafka(
    version: str,
    protocol: str,
    real_kafka: Callable[..., RealCluster],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of each protocol, and on the first release with groups. Nothing is left of the probe's own group."""
    servers = real_kafka(version).bootstrap_servers
    topic, group = f"hay-{uuid.uuid4().hex[:8]}", f"g-{uuid.uuid4().hex[:8]}"
    _use(servers, group, topic, group_protocol=protocol)
    assert _probe("-b", servers, group, "--timeout", "10") == 0, capsys.readouterr().out
    said = capsys.readouterr().out
    assert f"{topic}-0 at 2 (the committed offset)." in said
    assert "1 offsets to come" in said
    assert "kelpie-probe-" in said
    seen = asyncio.run(survey(Settings.of(servers)))
    listed = {name for row in seen.listings for name in row.groups}
    assert group in listed or version == "0.9.0.1"
    assert not [name for name in listed if name.startswith("kelpie-probe-")]


@pytest.mark.real
def test_join_with_the_consumer_protocol_on_real_kafka(
    capsys: pytest.CaptureFixture[str], real_kafka: Callable[..., RealCluster]
) -> None:
    """KIP-848: one request joins, the next acknowledges the assignment, the last one leaves."""
    servers = real_kafka("4.3.1").bootstrap_servers
    topic, group = f"orders-{uuid.uuid4().hex[:8]}", f"billing-{uuid.uuid4().hex[:8]}"
    _use(servers, group, topic)
    assert _probe(group, "-b", servers, "--protocol", "consumer", "--json", "--timeout", "20") == 0
    report = json.loads(capsys.readouterr().out)
    (join,) = [chapter for chapter in report["chapters"] if chapter["name"] == "join"]
    assert "joined and assigned in" in join["said"][0]
    assert "It has left and is deleted." in join["said"][0]
    requests = [step["request"].partition("(")[0] for step in join["steps"] if step["request"]]
    assert "ConsumerGroupHeartbeat" in requests
    assert not {"JoinGroup", "SyncGroup"} & set(requests)


def test_join_with_the_consumer_protocol_fails_where_brokers_do_not_know_it(
    lab: SyncCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lab has no groups of KIP-848; nor has Kafka before 4.0."""
    assert _probe("billing", "-b", lab.bootstrap_servers, "--protocol", "consumer") == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert 'gets no further than "Join, as a scratch group beside it"' in printed
