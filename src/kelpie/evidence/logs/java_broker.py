"""What brokers and controllers write about each other and about who leads: 0.9 to 4.x.

Up to 3.x a controller is a broker, "[Controller 0]: " or "[Controller id=0] "; with KRaft it is
"[QuorumController id=100] ". What group coordinators write is in `java_coordinator`.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from kelpie.evidence.logs.matching import Meaning, Message
from kelpie.evidence.logs.templates import read_templates
from kelpie.observations import EventKind as Kind

_NO_REPLICA = re.compile(
    r"Live brokers are: \[(?P<alive>[^\[\]]*)\], Assigned replicas are: \[(?P<replicas>[^\[\]]*)\]"
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


def _brokers_changed(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """ZooKeeper's days: who came and who went, in one line."""
    changes = [(Kind.BROKER_UNFENCED, "added"), (Kind.BROKER_FENCED, "gone")]
    return [
        Meaning(kind, {"node": int(number), "reason": GONE if kind is Kind.BROKER_FENCED else ""})
        for kind, name in changes
        for number in _NUMBERS.findall(meaning.details.get(name, ""))
    ]


def _no_replica(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """No replica is alive: the partition has no leader, and the brokers of its replicas are gone."""
    match = _NO_REPLICA.search(message.trace)
    alive = set(_NUMBERS.findall(match["alive"])) if match is not None else set()
    replicas = _NUMBERS.findall(match["replicas"]) if match is not None else []
    details = {"leader": "-1", "replicas": ",".join(replicas)}
    fields = {**meaning.fields, "node": -1, "reason": "no replica is alive"}
    gone = [
        Meaning(Kind.BROKER_FENCED, {"node": int(node), "reason": GONE})
        for node in replicas
        if node not in alive
    ]
    return [Meaning(Kind.LEADER_CHANGED, fields, details), *gone]


def _leader(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """Followers and controllers name the leader; a leader is the broker in the bracket."""
    details = {"leader" if name == "leader_id" else name: value for name, value in meaning.details.items()}
    return [replace(meaning, fields={**meaning.fields, "node": int(details["leader"])}, details=details)]


PATTERNS = read_templates(
    "java_broker",
    (_brokers_changed, _leader, _no_replica),
    {
        "broker_server": ("BrokerServer",),
        "kafka_server": ("Kafka Server", "KafkaServer"),
        "partition": ("Partition",),
        "with_peer": _WITH_PEER,
    },
)[""]
