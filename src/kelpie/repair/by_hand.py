"""What to do on releases that cannot be asked: through configuration and ZooKeeper, by a person."""

import json
import shlex
from collections.abc import Sequence

from kelpie.model.names import TopicPartition
from kelpie.repair.plan import Way

_ZOOKEEPER = "ZOOKEEPER:2181"
_SETTING = "unclean.leader.election.enable"


def election(partitions: Sequence[TopicPartition], *, unclean: bool) -> tuple[Way, ...]:
    return _unclean(partitions) if unclean else (_preferred(partitions),)


def _preferred(partitions: Sequence[TopicPartition]) -> Way:
    """Kafka before 2.2."""
    asked = json.dumps({"partitions": [{"topic": it.topic, "partition": it.partition} for it in partitions]})
    return Way(
        "Before Kafka 2.2 the controller takes such wishes from /admin/preferred_replica_election in "
        "ZooKeeper, where Kafka's own tool writes them:",
        (
            f"echo {shlex.quote(asked)} > elect.json",
            f"kafka-preferred-replica-election.sh --zookeeper {_ZOOKEEPER} --path-to-json-file elect.json",
        ),
    )


def _unclean(partitions: Sequence[TopicPartition]) -> tuple[Way, ...]:
    """Kafka before 2.4."""
    topics = sorted({it.topic for it in partitions})
    return (
        Way(
            f"Allow unclean elections for the topic ({_SETTING}; before Kafka 0.11 they are allowed unless "
            "the brokers forbid them):",
            tuple(_configure(topic, "--add-config", f"{_SETTING}=true") for topic in topics),
        ),
        Way(
            "If no leader appears within a minute, let the controller begin anew; it then looks at every "
            "partition:",
            (f"zookeeper-shell.sh {_ZOOKEEPER} delete /controller",),
        ),
        Way(
            "When there is a leader, forbid them again:",
            tuple(_configure(topic, "--delete-config", _SETTING) for topic in topics),
        ),
    )


def _configure(topic: str, *change: str) -> str:
    words = ["--zookeeper", _ZOOKEEPER, "--alter", "--entity-type", "topics", "--entity-name", topic]
    return shlex.join(["kafka-configs.sh", *words, *change])
