"""What brokers and controllers write about each other and about who leads: 0.9 to 4.x.

Up to 3.x a controller is a broker, "[Controller 0]: " or "[Controller id=0] "; with KRaft it is
"[QuorumController id=100] ". What group coordinators write is in `java_coordinator`.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from kelpie.evidence.logs.matching import Found, Message, Pattern, says
from kelpie.observations import EventKind as Kind

_NO_REPLICA = re.compile(
    r"Live brokers are: \[(?P<alive>.*?)\], Assigned replicas are: \[(?P<replicas>.*?)\]"
)
_NUMBERS = re.compile(r"\d{1,9}")
_WITH_PEER = (
    "ReplicaFetcher",
    "Controller",
    "RequestSendThread",
    "RaftManager",
    "NodeToController",
    "BrokerToController",
)
GONE = "not among the live brokers"
"""Why a controller of ZooKeeper's days takes a broker for dead. It says so once for every partition."""


def _brokers_changed(found: Found, _: Message) -> Sequence[Found]:
    """ZooKeeper's days: who came and who went, in one line."""
    changes = [(Kind.BROKER_UNFENCED, "added"), (Kind.BROKER_FENCED, "gone")]
    return [
        Found(kind, {"node": int(number), "reason": GONE if kind is Kind.BROKER_FENCED else ""})
        for kind, name in changes
        for number in _NUMBERS.findall(found.details.get(name, ""))
    ]


def _no_replica(found: Found, message: Message) -> Sequence[Found]:
    """No replica is alive: the partition has no leader, and the brokers of its replicas are gone."""
    match = _NO_REPLICA.search(message.trace)
    alive = set(_NUMBERS.findall(match["alive"])) if match is not None else set()
    replicas = _NUMBERS.findall(match["replicas"]) if match is not None else []
    details = {"leader": "-1", "replicas": ",".join(replicas)}
    fields = {**found.fields, "node": -1, "reason": "no replica is alive"}
    gone = [
        Found(Kind.BROKER_FENCED, {"node": int(it), "reason": GONE}) for it in replicas if it not in alive
    ]
    return [Found(Kind.LEADER_CHANGED, fields, details), *gone]


def _leader(found: Found, _: Message) -> Sequence[Found]:
    """Followers and controllers name the leader; a leader is the broker in the bracket."""
    details = {"leader" if name == "leader_id" else name: value for name, value in found.details.items()}
    return [replace(found, fields={**found.fields, "node": int(details["leader"])}, details=details)]


PATTERNS: tuple[Pattern, ...] = (
    # Brokers.
    says(Kind.BROKER_STARTED, "started", within=("Kafka Server", "KafkaServer")),
    says(Kind.BROKER_STARTED, "Transition from STARTING to STARTED", within="BrokerServer"),
    says(Kind.BROKER_STOPPED, "shut down completed", within=("Kafka Server", "KafkaServer")),
    says(Kind.BROKER_STOPPED, "Transition from SHUTTING_DOWN to SHUTDOWN", within="BrokerServer"),
    says(
        Kind.PEER_UNREACHABLE,
        "Error in fetch {*} Possible cause: java.io.IOException: Connection to {node} failed",
    ),
    says(
        Kind.PEER_UNREACHABLE,
        "Error in fetch {*} Possible cause: java.io.IOException: Connection to {node} was disconnected "
        "before the response was read",
    ),
    says(
        Kind.PEER_UNREACHABLE,
        "Connection to node {node} could not be established. Broker may not be available.",
        within=_WITH_PEER,
    ),
    says(
        Kind.PEER_UNREACHABLE,
        "Connection to node {node} ({address}) could not be established. {*} may not be available.",
        within=_WITH_PEER,
    ),
    says(Kind.PEER_UNREACHABLE, "Controller {*}'s connection to broker {node} was unsuccessful"),
    # The controller.
    says(
        Kind.BROKER_FENCED,
        "Newly added brokers: {added}, deleted brokers: {gone}, bounced brokers: {*}, all live brokers: {*}",
        then=_brokers_changed,
    ),
    says(
        Kind.BROKER_FENCED,
        "Newly added brokers: {added}, deleted brokers: {gone}, all live brokers: {*}",
        then=_brokers_changed,
    ),
    says(Kind.BROKER_FENCED, "Broker failure callback for {gone}", then=_brokers_changed),
    says(Kind.BROKER_UNFENCED, "New broker startup callback for {added}", then=_brokers_changed),
    says(Kind.BROKER_FENCED, "Fencing broker {node} at epoch {*} because {reason}."),
    says(Kind.BROKER_FENCED, "Fencing broker {node} because {reason}."),
    says(Kind.BROKER_UNFENCED, "The request from broker {node} to unfence has been granted…"),
    says(Kind.BROKER_FENCED, "Unregistering broker {node}…", reason="unregistered"),
    says(Kind.PARTITIONS_CHANGED, "handleBrokerFenced: changing {partitions} partition(s)"),
    says(Kind.PARTITIONS_CHANGED, "handleBrokerUnfenced: changing {partitions} partition(s)"),
    says(Kind.PARTITIONS_CHANGED, "handleBrokerUncleanShutdown: changing {partitions} partition(s)"),
    says(Kind.PARTITIONS_CHANGED, "Shrinking ISR from {before} to {after}{*}", within="Partition"),
    says(
        Kind.PARTITIONS_CHANGED,
        "Partition {*} on broker {*}: Shrinking ISR for partition {tp} from {before} to {after}",
    ),
    # Leaders.
    says(
        Kind.LEADER_CHANGED,
        'Selected new leader and ISR {"leader":{leader_id},"leader_epoch":{epoch},"isr":[{isr}]} for offline '
        "partition {tp}",
        then=_leader,
    ),
    says(
        Kind.LEADER_CHANGED,
        "Leader {tp} with topic id {*} starts at leader epoch {epoch} from offset {offset} with {*}ISR "
        "[{isr}]{*}",
    ),
    says(
        Kind.LEADER_CHANGED,
        "Leader {tp} starts at leader epoch {epoch} from offset {offset} with {*}ISR [{isr}]{*}",
    ),
    says(
        Kind.LEADER_CHANGED,
        "Follower {tp} starts at leader epoch {epoch} from offset {offset} with {*}Current leader is "
        "{leader_id}. {*}",
        then=_leader,
    ),
    says(
        Kind.LEADER_CHANGED,
        "Controller {*} initiated state change for partition {tp} from OfflinePartition to OnlinePartition "
        "failed",
        then=_no_replica,
    ),
)
