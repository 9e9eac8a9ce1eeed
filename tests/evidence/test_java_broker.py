"""Every wording of brokers and controllers, from 0.9 to 4.x, as their sources have it."""

# ruff: noqa: E501 - lines of logs are quoted as they stand.

import pytest

from kelpie.observations import EventKind as Kind
from tests.evidence.reading import events_of, in_log4j, told

P25 = {"topic": "__consumer_offsets", "partition": 25}

CLUSTER = [
    ("[Kafka Server 0], started", Kind.BROKER_STARTED, {"node": 0}),
    ("[KafkaServer id=0] started", Kind.BROKER_STARTED, {"node": 0}),
    ("[BrokerServer id=1] Transition from STARTING to STARTED", Kind.BROKER_STARTED, {"node": 1}),
    ("[Kafka Server 0], shut down completed", Kind.BROKER_STOPPED, {"node": 0}),
    ("[KafkaServer id=0] shut down completed", Kind.BROKER_STOPPED, {"node": 0}),
    ("[BrokerServer id=1] Transition from SHUTTING_DOWN to SHUTDOWN", Kind.BROKER_STOPPED, {"node": 1}),
    (
        "[ReplicaFetcherThread-0-1], Error in fetch kafka.server.ReplicaFetcherThread$FetchRequest@25a44079. "
        "Possible cause: java.io.IOException: Connection to Node(1, 127.0.0.1, 19091) failed",
        Kind.PEER_UNREACHABLE,
        {"node": 1},
    ),
    (
        "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Connection to node 2 (/127.0.0.1:21102) could not be "
        "established. Node may not be available.",
        Kind.PEER_UNREACHABLE,
        {"node": 2, "address": "/127.0.0.1:21102"},
    ),
    (
        "[Controller id=0, targetBrokerId=1] Connection to node 1 (/127.0.0.1:21102) could not be established. "
        "Broker may not be available.",
        Kind.PEER_UNREACHABLE,
        {"node": 1, "address": "/127.0.0.1:21102"},
    ),
    (
        "[RequestSendThread controllerId=0] Controller 0's connection to broker 127.0.0.1:9093 (id: 1 rack: null) was "
        "unsuccessful",
        Kind.PEER_UNREACHABLE,
        {"node": 1},
    ),
    (
        "[QuorumController id=100] Fencing broker 3 at epoch 13 because its session has timed out.",
        Kind.BROKER_FENCED,
        {"node": 3, "reason": "its session has timed out"},
    ),
    (
        "[QuorumController id=100] The request from broker 3 to unfence has been granted because it has caught up "
        "with the offset of its register broker record 8.",
        Kind.BROKER_UNFENCED,
        {"node": 3},
    ),
    (
        "[Controller 0]: Broker failure callback for 2",
        Kind.BROKER_FENCED,
        {"node": 2, "reason": "not among the live brokers"},
    ),
    ("[Controller 0]: New broker startup callback for 2", Kind.BROKER_UNFENCED, {"node": 2}),
    (
        "[QuorumController id=100] handleBrokerFenced: changing 53 partition(s)",
        Kind.PARTITIONS_CHANGED,
        {"partitions": "53"},
    ),
    (
        "[Partition __consumer_offsets-25 broker=1] Shrinking ISR from 1,2 to 1. Leader: (highWatermark: 5, "
        "endOffset: 5).",
        Kind.PARTITIONS_CHANGED,
        {"node": 1, **P25, "before": "1,2", "after": "1"},
    ),
    (
        '[OfflinePartitionLeaderSelector]: Selected new leader and ISR {"leader":0,"leader_epoch":1,"isr":[0]} for '
        "offline partition [__consumer_offsets,25]",
        Kind.LEADER_CHANGED,
        {"node": 0, **P25, "leader": "0", "epoch": "1", "isr": "0"},
    ),
    (
        "[Broker id=1] Leader __consumer_offsets-25 with topic id Some(hQMlj9NlQRe5Iyf_3CMiXA) starts at leader "
        "epoch 2 from offset 80 with partition epoch 2, high watermark 80, ISR [1], adding replicas [] and removing "
        "replicas [] . Previous leader Some(2) and previous leader epoch was 1.",
        Kind.LEADER_CHANGED,
        {"node": 1, **P25, "offset": 80, "epoch": "2", "isr": "1"},
    ),
    (
        "[Broker id=2] Follower __consumer_offsets-25 starts at leader epoch 2 from offset 80 with partition epoch 2 "
        "and high watermark 80. Current leader is -1. Previous leader Some(2) and previous leader epoch was 1.",
        Kind.LEADER_CHANGED,
        {"node": -1, **P25, "offset": 80, "epoch": "2", "leader": "-1"},
    ),
    (
        "[KafkaApi-0] Number of alive brokers '1' does not meet the required replication factor '3' for the offsets "
        "topic (configured via 'offsets.topic.replication.factor'). This error can be ignored if the cluster is "
        "starting up and not all brokers are up yet.",
        Kind.COORDINATOR_REFUSED,
        {"node": 0, "alive": "1", "replication_factor": "3", "error": 38},
    ),
    (
        "Auto topic creation failed for __consumer_offsets with error 'INVALID_REPLICATION_FACTOR': Unable to "
        "replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only 1 "
        "broker(s) are registered.",
        Kind.COORDINATOR_REFUSED,
        {"error": 38, "reason": "INVALID_REPLICATION_FACTOR"},
    ),
]

SILENT = [
    "[BrokerServer id=1] Transition from STARTED to SHUTTING_DOWN",
    "[SocketServer listenerType=ZK_BROKER, nodeId=0] started",
]


@pytest.mark.parametrize(("message", "kind", "expected"), CLUSTER)
def test_what_is_said_of_brokers_and_partitions_is_understood(
    message: str, kind: Kind, expected: dict[str, object]
) -> None:
    """Who died when is told by the controller, in ZooKeeper's days and in KRaft's."""
    (event,) = events_of(*in_log4j([message]))
    assert event.kind is kind
    assert told(event) == expected


@pytest.mark.parametrize("line", SILENT)
def test_what_means_nothing_is_let_pass(line: str) -> None:
    """A broker that is about to stop is still there."""
    assert events_of(*in_log4j([line])) == []


def test_brokers_that_come_and_go_in_one_line_are_told_apart() -> None:
    """ZooKeeper's days: the listener's line has all of them."""
    line = "[Controller id=0] Newly added brokers: 1,4, deleted brokers: 2, bounced brokers: , all live brokers: 0,1,4"
    events = events_of(*in_log4j([line]))
    assert [(event.kind, event.node) for event in events] == [
        (Kind.BROKER_UNFENCED, 1),
        (Kind.BROKER_UNFENCED, 4),
        (Kind.BROKER_FENCED, 2),
    ]


def test_partitions_without_a_living_replica_name_the_dead_once() -> None:
    """Kafka 0.9: the line comes for every partition; that brokers are gone need not be said so often."""
    lines = []
    for partition in (25, 45):
        message = (
            f"Controller 0 epoch 2 initiated state change for partition [__consumer_offsets,{partition}] from "
            "OfflinePartition to OnlinePartition failed"
        )
        lines += in_log4j([message])
        lines += [
            f"kafka.common.NoReplicaOnlineException: No replica for partition [__consumer_offsets,{partition}] is "
            "alive. Live brokers are: [Set(0)], Assigned replicas are: [List(1, 2)]",
            "\tat kafka.controller.OfflinePartitionLeaderSelector.selectLeader(PartitionLeaderSelector.scala:76)",
        ]
    events = events_of(*lines)
    leaderless = [(event.partition, event.node) for event in events if event.kind is Kind.LEADER_CHANGED]
    assert leaderless == [(25, -1), (45, -1)]
    assert [event.node for event in events if event.kind is Kind.BROKER_FENCED] == [1, 2]
