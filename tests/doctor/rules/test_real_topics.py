"""Topics that are deleted, created again and hidden, on real Kafka 4.3.1: three things, told apart."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Severity
from kelpie.examination import Examination
from kelpie.real.cluster import RealCluster
from kelpie.store import Store
from tests.client.inhabitants import Inhabitants

pytestmark = pytest.mark.real

GROUP = "reader"
TOPICS = ("kept", "deleted", "anew", "secret")
CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": True,
}


async def _populate(servers: str) -> None:
    async with await Nodes.open(Settings.of(servers)) as nodes:
        living = Inhabitants(nodes)
        for topic in TOPICS:
            await living.topic(topic)
            await living.produce(topic, 0, 50)
            await living.commit(GROUP, topic, {0: 50})


def _hide(admin: AdminClient, topic: str) -> None:
    """Once somebody else has rights on the topic, nobody has them without being named."""
    somebody = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:other",
        "*",
        AclOperation.ALL,
        AclPermissionType.ALLOW,
    )
    for future in admin.create_acls([somebody]).values():
        future.result(30)


def _topics_with_offsets(admin: AdminClient) -> set[str]:
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)]).values()
    return {row.topic for row in future.result(30).topic_partitions}


def _examine(servers: str, store: Store) -> Diagnosis:
    examination = Examination(Settings.of(servers), groups=[GROUP], store=store)
    return asyncio.run(examination.examine()).diagnosis


def test_deleted_created_again_and_hidden_are_three_things(
    fresh_real_kafka: Callable[..., RealCluster], tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    """A consumer commits its old position into the new topic, as librdkafka does."""
    servers = fresh_real_kafka("4.3.1", **CONFIG).bootstrap_servers
    asyncio.run(_populate(servers))
    store = Store(tmp_path)
    healthy = _examine(servers, store)
    assert not [finding for finding in healthy.findings if finding.severity > Severity.NOTICE]

    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.delete_topics(["deleted", "anew"]).values():
        future.result(30)
    wait_until(lambda: _topics_with_offsets(admin) == {"kept", "secret"}, limit_s=30)
    for future in admin.create_topics([NewTopic("anew", 1, 1)]).values():
        future.result(30)
    old = ConsumerGroupTopicPartitions(GROUP, [TopicPartition("anew", 0, 50)])
    for future in admin.alter_consumer_group_offsets([old]).values():
        future.result(30)
    _hide(admin, "secret")

    found: dict[str, str] = {}

    def told() -> bool:
        found.clear()
        findings = _examine(servers, store).findings
        found.update({finding.code: finding.summary for finding in findings if finding.group == GROUP})
        return "topic secret" in found.get("KLP107", "")

    wait_until(told, limit_s=30)  # Rights reach the broker after a moment.
    assert found.keys() == {"KLP107", "KLP314", "KLP315"}, found
    assert "anew-0 is 50" in found["KLP314"]
    assert "read topic deleted, which does not exist any more" in found["KLP315"]
    assert "secret" not in found["KLP315"]
