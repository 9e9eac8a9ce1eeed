"""Where a setting's value comes from, as DescribeConfigs tells it, and what KIP-966 keeps fixed.

The expected values were printed by kafka-configs against Kafka 4.3.1 (tests/lab/java/scenes/configs.txt).
"""

import pytest

from kelpie.errors import ErrorCode
from kelpie.wire.api.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kelpie.wire.api.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from tests.broker.driver import Cluster

TOPIC, BROKER = 2, 4
OF_TOPIC, OF_BROKER, OF_CLUSTER, STATIC, DEFAULT = 1, 2, 3, 4, 5
SET, DELETE = 0, 1


def synonyms(cluster: Cluster, kind: int, name: str, key: str) -> list[tuple[str, str, int]]:
    asked = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[key])
    request = DescribeConfigsRequest(resources=[asked], include_synonyms=True)
    (config,) = cluster.ask(1, request, 4).results[0].configs
    return [(it.name, it.value, it.source) for it in config.synonyms]


def alter(cluster: Cluster, node: str, key: str, value: str | None, how: int = SET) -> tuple[int, str | None]:
    change = ConfigChange(name=key, config_operation=how, value=value)
    resource = IncrementalAlterConfigsResource(resource_type=BROKER, resource_name=node, configs=[change])
    answer = cluster.ask(1, IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    return answer.responses[0].error_code, answer.responses[0].error_message


def test_every_place_with_a_value_is_named() -> None:
    """The one that counts comes first, the default, under the broker's name for it, last."""
    cluster = Cluster(settings={"log.segment.bytes": "2000000"})
    cluster.create(config={"segment.bytes": "3000000"})
    alter(cluster, "", "log.segment.bytes", "4000000")
    alter(cluster, "1", "log.segment.bytes", "5000000")

    assert synonyms(cluster, TOPIC, "orders", "segment.bytes") == [
        ("segment.bytes", "3000000", OF_TOPIC),
        ("log.segment.bytes", "5000000", OF_BROKER),
        ("log.segment.bytes", "4000000", OF_CLUSTER),
        ("log.segment.bytes", "2000000", STATIC),
        ("log.segment.bytes", "1073741824", DEFAULT),
    ]
    assert synonyms(cluster, TOPIC, "orders", "preallocate") == [("log.preallocate", "false", DEFAULT)]
    assert synonyms(cluster, TOPIC, "orders", "remote.storage.enable") == []


def test_coarser_setting_gives_the_default() -> None:
    """log.retention.ms has none of its own; the hours are told only behind a value that is given."""
    cluster = Cluster()
    cluster.create()
    before = synonyms(cluster, TOPIC, "orders", "retention.ms")
    alter(cluster, "1", "log.retention.ms", "7000000")

    assert before == []
    for kind, name, key in ((TOPIC, "orders", "retention.ms"), (BROKER, "1", "log.retention.ms")):
        assert synonyms(cluster, kind, name, key) == [
            ("log.retention.ms", "7000000", OF_BROKER),
            ("log.retention.hours", "168", DEFAULT),
        ]


def test_cluster_has_one_idea_of_enough_replicas() -> None:
    """KIP-966: it becomes a setting of the cluster, and neither a broker nor a deletion can change that."""
    cluster = Cluster(settings={"min.insync.replicas": "2"})
    cluster.create()

    assert synonyms(cluster, TOPIC, "orders", "min.insync.replicas") == [
        ("min.insync.replicas", "2", OF_CLUSTER),
        ("min.insync.replicas", "2", STATIC),
        ("min.insync.replicas", "1", DEFAULT),
    ]
    assert alter(cluster, "2", "min.insync.replicas", "1") == (
        ErrorCode.INVALID_CONFIG,
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
    )
    assert alter(cluster, "", "min.insync.replicas", None, DELETE) == (
        ErrorCode.INVALID_CONFIG,
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
    )
    assert alter(cluster, "", "min.insync.replicas", "3") == (ErrorCode.NONE, None)


@pytest.mark.parametrize("persona", ["2.8", "3.9"])
def test_before_kafka_4_every_broker_has_its_own(persona: str) -> None:
    """No ELR, no such rule."""
    cluster = Cluster(persona=persona)
    cluster.create()

    assert synonyms(cluster, TOPIC, "orders", "min.insync.replicas") == [
        ("min.insync.replicas", "1", DEFAULT)
    ]
    assert alter(cluster, "2", "min.insync.replicas", "2")[0] == ErrorCode.NONE


def test_identity_cannot_be_changed() -> None:
    """In the words of the release."""
    said = [alter(Cluster(persona=persona), "1", "broker.id", "7") for persona in ("3.9", "4.3")]

    assert said == [
        (ErrorCode.INVALID_REQUEST, "Cannot update these configs dynamically: Set(broker.id)"),
        (ErrorCode.INVALID_REQUEST, "Cannot update these configs dynamically: [broker.id]"),
    ]
