"""Groups of Kafka 0.8's consumers in a live ZooKeeper: healthy ones are silent, broken ones are told."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from kelpie.client.settings import Settings
from kelpie.client.survey import wall_clock
from kelpie.client.zookeeper import connected
from kelpie.client.zookeeper_survey import ZooKeeperPlace, survey_zookeeper
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.examination import Examination
from kelpie.lab import SyncCluster
from kelpie.real.zookeeper import RealZooKeeper
from kelpie.zookeeper.assignment import assign_all
from tests.client.group_members import consuming
from tests.client.zookeeper_client import create_nodes, kazoo_client

pytestmark = pytest.mark.real
TOPIC, PARTITIONS = "orders", 4
INTERVAL_S = 2.1


class Groups:
    """Members as real consumers write them: each with a session of its own."""

    def __init__(self, hosts: str, stack: ExitStack) -> None:
        self.hosts = hosts
        self._stack = stack
        self.client = self.session()
        partitions = {str(number): [1] for number in range(PARTITIONS)}
        self.put(f"/brokers/topics/{TOPIC}", json.dumps({"version": 1, "partitions": partitions}))
        self.client.ensure_path("/brokers/ids")

    def session(self) -> Any:
        return self._stack.enter_context(kazoo_client(self.hosts))

    def put(self, path: str, value: str) -> None:
        self.client.create(path, value.encode(), makepath=True)

    def register(self, group: str, member: str, session: Any) -> None:
        content = {"version": 1, "subscription": {TOPIC: 1}, "pattern": "static", "timestamp": "1"}
        path = f"/consumers/{group}/ids/{member}"
        session.create(path, json.dumps(content).encode(), ephemeral=True, makepath=True)

    def own(self, group: str, member: str, session: Any, numbers: Sequence[int]) -> None:
        for number in numbers:
            path = f"/consumers/{group}/owners/{TOPIC}/{number}"
            session.create(path, f"{member}-0".encode(), ephemeral=True, makepath=True)

    def of(self, group: str, owned: Mapping[str, Sequence[int]]) -> None:
        """A group whose members own these partitions."""
        for member, numbers in owned.items():
            session = self.session()
            self.register(group, f"{group}_{member}", session)
            self.own(group, f"{group}_{member}", session, numbers)


@pytest.fixture
def groups(real_zookeeper: RealZooKeeper) -> Iterator[Groups]:
    with ExitStack() as stack:
        yield Groups(real_zookeeper.connect, stack)


def examined(tree: Groups, **fields: Any) -> Diagnosis:
    place = ZooKeeperPlace(tree.hosts, interval_s=INTERVAL_S)
    return asyncio.run(Examination(zookeeper=place, **fields).examine()).diagnosis


def told(diagnosis: Diagnosis) -> set[tuple[str, str | None]]:
    """What is found of groups. (The trees of these tests name no living broker: that is KLP100.)"""
    return {(finding.code, finding.group) for finding in diagnosis.findings if finding.code != "KLP100"}


def test_partitions_without_an_owner_and_stale_owners_are_told_and_the_healthy_are_not(
    groups: Groups,
) -> None:
    """Three groups at once. Who owns nothing may still be trying: that stays open for some time."""
    groups.of("healthy", {"a": [0, 1], "b": [2, 3]})
    groups.of("stuck", {"a": [], "b": [2, 3]})
    groups.of("stale", {"a": [0, 1, 2]})
    groups.own("stale", "stale_gone", groups.session(), [3])
    diagnosis = examined(groups)
    assert diagnosis.groups == ("healthy", "stale", "stuck")
    assert told(diagnosis) == {("KLP503", "stuck"), ("KLP505", "stale")}
    finding = next(finding for finding in diagnosis.findings if finding.code == "KLP503")
    assert finding.partitions == (f"{TOPIC}-0", f"{TOPIC}-1")
    assert "stuck" in {group for each in diagnosis.open if each.code == "KLP501" for group in each.groups}
    assert told(examined(groups, groups=["healthy"])) == set()


def test_a_member_that_changes_between_the_looks_leaves_it_open(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebalance under way: the first look finds partitions without an owner, the second has them owned."""
    groups.of("moving", {"b": [2, 3]})
    late = groups.session()
    groups.register("moving", "moving_a", late)

    def claims(_: float) -> None:
        groups.own("moving", "moving_a", late, [0, 1])

    monkeypatch.setattr("kelpie.client.zookeeper_survey.time.sleep", claims)
    diagnosis = examined(groups)
    assert told(diagnosis) == set()


def test_a_group_of_the_same_name_in_kafka_is_another_one(groups: Groups) -> None:
    """Each is judged by what is known of it alone, and has a name of its own in the report."""
    groups.of("billing", {"a": [], "b": [2, 3]})
    with SyncCluster(1, config={"group.initial.rebalance.delay.ms": 0}) as cluster:
        cluster.create_topic(TOPIC, partitions=PARTITIONS, replication=1)
        with consuming(cluster, ("app", "billing")):
            settings = Settings.of(cluster.bootstrap_servers)
            diagnosis = examined(groups, settings=settings, history_bytes=None)
    assert diagnosis.groups == ("billing", "billing (in ZooKeeper)")
    assert ("KLP503", "billing (in ZooKeeper)") in told(diagnosis)
    assert not [finding for finding in diagnosis.findings if finding.group == "billing"]


def test_hundreds_of_groups_take_a_handful_of_requests(
    real_zookeeper: RealZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes and lists of children come by the thousand, level by level, in each of the two looks."""
    partitions = range(PARTITIONS)
    nodes: dict[str, bytes] = {
        "/brokers": b"",
        "/brokers/ids": b"",
        "/brokers/topics": b"",
        "/consumers": b"",
    }
    described = {"version": 1, "partitions": {str(number): [1] for number in partitions}}
    nodes[f"/brokers/topics/{TOPIC}"] = json.dumps(described).encode()
    content = json.dumps({"version": 1, "subscription": {TOPIC: 1}, "pattern": "static"}).encode()
    for number in range(300):
        base = f"/consumers/g{number}"
        owners = assign_all({f"g{number}_a": {TOPIC: 1}}, {TOPIC: partitions})
        nodes |= dict.fromkeys([base, f"{base}/ids", f"{base}/owners", f"{base}/owners/{TOPIC}"], b"")
        nodes[f"{base}/ids/g{number}_a"] = content
        nodes |= {
            f"{base}/owners/{TOPIC}/{name.partition}": thread.encode() for name, thread in owners.items()
        }
    requests: Counter[int] = Counter()

    @contextmanager
    def counting(*arguments: Any, **named: Any) -> Iterator[Any]:
        with connected(*arguments, **named) as client:
            call = client._call

            def count(request: Any, answer: Any) -> Any:
                requests[request.type] += 1
                return call(request, answer)

            client._call = count
            yield client

    monkeypatch.setattr("kelpie.client.zookeeper_survey.connected", counting)
    with kazoo_client(real_zookeeper.connect) as client:
        create_nodes(client, nodes)
        rows = survey_zookeeper(ZooKeeperPlace(real_zookeeper.connect, interval_s=0.0), wall_clock)
    assert len(rows.zookeeper_groups) == 600
    assert rows.unasked == []
    assert requests.total() <= 40
