"""What the brokers say they can do, and what becomes of tools that ask for more."""

import re
from collections.abc import Callable

import pytest

from tests.lab.clients.clusters import BROKERS, Kafka
from tests.lab.java.jvm import KafkaJvm, Said

_API = re.compile(r"\t(\w+)\(\d+\): (?:(\d+)(?: to (\d+))?|UNSUPPORTED)")

# Served by real Kafka and not by the lab, which does not say that it does.
_LATER = {
    "newer groups": {
        *("ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "StreamsGroupHeartbeat", "StreamsGroupDescribe"),
        *("ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge"),
        *(
            "InitializeShareGroupState",
            "ReadShareGroupState",
            "WriteShareGroupState",
            "DeleteShareGroupState",
        ),
        *("ReadShareGroupStateSummary", "DescribeShareGroupOffsets", "AlterShareGroupOffsets"),
        *("DeleteShareGroupOffsets",),
    },
    "security": {
        *("SaslHandshake", "SaslAuthenticate", "DescribeAcls", "CreateAcls", "DeleteAcls"),
        *(
            "CreateDelegationToken",
            "RenewDelegationToken",
            "ExpireDelegationToken",
            "DescribeDelegationToken",
        ),
        *("DescribeUserScramCredentials", "AlterUserScramCredentials"),
    },
    "quotas and telemetry": {
        *("DescribeClientQuotas", "AlterClientQuotas", "GetTelemetrySubscriptions", "PushTelemetry"),
    },
    "the inside of a cluster": {
        *("WriteTxnMarkers", "AlterReplicaLogDirs", "UpdateFeatures", "UnregisterBroker"),
        *("AddRaftVoter", "RemoveRaftVoter", "ListConfigResources"),
    },
}
LATER = frozenset().union(*_LATER.values())
_SERVED = """
Produce 0-13, Fetch 4-18, ListOffsets 1-11, Metadata 0-13, OffsetCommit 2-10, OffsetFetch 1-10,
FindCoordinator 0-6, JoinGroup 0-9, Heartbeat 0-4, LeaveGroup 0-5, SyncGroup 0-5, DescribeGroups 0-6,
ListGroups 0-5, ApiVersions 0-4, CreateTopics 2-7, DeleteTopics 1-6, DeleteRecords 0-2, InitProducerId 0-5,
OffsetForLeaderEpoch 2-4, AddPartitionsToTxn 0-5, AddOffsetsToTxn 0-4, EndTxn 0-5, TxnOffsetCommit 0-5,
DescribeConfigs 1-4, AlterConfigs 0-2, DescribeLogDirs 1-5, CreatePartitions 0-3, DeleteGroups 0-2,
ElectLeaders 0-2, IncrementalAlterConfigs 0-1, AlterPartitionReassignments 0-1,
ListPartitionReassignments 0, OffsetDelete 0, DescribeCluster 0-2, DescribeProducers 0,
DescribeTransactions 0, ListTransactions 0-2, DescribeTopicPartitions 0, DescribeQuorum 0-2
"""


def _versions(said: str) -> list[dict[str, str]]:
    """Of each broker, the versions by API; none where it is not served."""
    return [
        {name: f"{low}-{high}" if high else low for name, low, high in _API.findall(broker)}
        for broker in said.split(" -> (")[1:]
    ]


def test_versions_are_those_of_the_release(kafka: Kafka, tool: Callable[..., Said]) -> None:
    """Clients choose requests by them: what is served is served in all versions, the rest not at all."""
    brokers = _versions(tool("kafka-broker-api-versions").stdout)

    assert len(brokers) == BROKERS
    assert brokers[0] == brokers[1] == brokers[2]
    assert {name: versions for name, versions in brokers[0].items() if name not in LATER} == dict(
        served.split() for served in _SERVED.split(",")
    )
    assert any(brokers[0][name] for name in LATER) == (kafka.kind == "real")


def test_the_quorum_of_controllers_is_described(tool: Callable[..., Said]) -> None:
    """Its leader's clock is what the doctor compares its own with."""
    said = tool("kafka-metadata-quorum", "describe", "--status")
    status = dict(line.split(":", 1) for line in said.stdout.splitlines() if ":" in line)
    assert said.status == 0, said.stderr
    assert int(status["LeaderId"]) >= 0
    assert int(status["MaxFollowerLag"]) == 0


@pytest.mark.parametrize(
    "command",
    [
        "kafka-acls --list",
        "kafka-configs --describe --entity-type users",
        "kafka-configs --describe --entity-type clients",
        "kafka-features upgrade --feature transaction.version=2",
    ],
)
def test_what_the_lab_does_not_offer_fails_as_on_an_older_broker(
    command: str, java: KafkaJvm, clusters: Callable[[str], Kafka]
) -> None:
    """The tool says so and ends: it neither hangs nor gets a wrong answer."""
    name, *arguments = command.split()

    said = java.tool(clusters("lab").bootstrap_servers, name, *arguments)

    assert said.status == 1
    assert "The node does not support" in said.stdout + said.stderr
