"""Elections by hand, on releases whose controller takes no request for one: with settings and ZooKeeper."""

import json
import shlex
from collections.abc import Sequence

from kelpie.model.names import TopicPartition
from kelpie.repair.plan import ManualStep

_ZOOKEEPER = "ZOOKEEPER:2181"
_SETTING = "unclean.leader.election.enable"


def election(partitions: Sequence[TopicPartition], *, unclean: bool) -> tuple[ManualStep, ...]:
    return _unclean(partitions) if unclean else (_preferred(partitions),)


def _preferred(partitions: Sequence[TopicPartition]) -> ManualStep:
    """Kafka before 2.2."""
    elections = json.dumps(
        {"partitions": [{"topic": name.topic, "partition": name.partition} for name in partitions]}
    )
    return ManualStep(
        "Before Kafka 2.2 the controller takes such wishes from /admin/preferred_replica_election in "
        "ZooKeeper, where Kafka's own tool writes them:",
        (
            f"echo {shlex.quote(elections)} > elect.json",
            f"kafka-preferred-replica-election.sh --zookeeper {_ZOOKEEPER} --path-to-json-file elect.json",
        ),
    )


def _unclean(partitions: Sequence[TopicPartition]) -> tuple[ManualStep, ...]:
    """Kafka before 2.4."""
    topics = sorted({partition.topic for partition in partitions})
    return (
        ManualStep(
            f"Allow unclean elections for the topic ({_SETTING}; before Kafka 0.11 they are allowed unless "
            "the brokers forbid them):",
            tuple(_configure(topic, "--add-config", f"{_SETTING}=true") for topic in topics),
        ),
        ManualStep(
            "If no leader appears within a minute, let the controller begin anew; it then looks at every "
            "partition:",
            (f"zookeeper-shell.sh {_ZOOKEEPER} delete /controller",),
        ),
        ManualStep(
            "When there is a leader, forbid them again:",
            tuple(_configure(topic, "--delete-config", _SETTING) for topic in topics),
        ),
    )


def _configure(topic: str, *change: str) -> str:
    words = ["--zookeeper", _ZOOKEEPER, "--alter", "--entity-type", "topics", "--entity-name", topic]
    return shlex.join(["kafka-configs.sh", *words, *change])
