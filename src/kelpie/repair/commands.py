"""Lines to paste: commands with this cluster's names in them."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.repair.plan import ManualStep, Plan

_ADDRESS = ("-b", "--bootstrap-server")


def kelpie(command: str, cluster: ClusterView, *words: str) -> str:
    """A command of ours: kelpie("reset", cluster, "billing", "--to-earliest")."""
    return shlex.join(["kelpie", command, "-b", cluster.bootstrap or "BROKER:9092", *words])


def kafka(tool: str, cluster: ClusterView, *words: str) -> str:
    """One of Kafka's own."""
    return shlex.join([f"{tool}.sh", "--bootstrap-server", cluster.bootstrap or "BROKER:9092", *words])


def topics_option(partitions: Sequence[TopicPartition]) -> list[str]:
    """As Kafka's tools take them: "orders:0,1", one for each topic."""
    by_topic: dict[str, list[str]] = {}
    for partition in sorted(partitions):
        by_topic.setdefault(partition.topic, []).append(str(partition.partition))
    return [f"{topic}:{','.join(numbers)}" for topic, numbers in by_topic.items()]


def with_properties(plan: Plan, file: str) -> Plan:
    """The same plan, whose commands reach the cluster with these client properties, too."""

    def way(given: ManualStep) -> ManualStep:
        return replace(given, lines=tuple(_with_properties(line, file) for line in given.lines))

    return replace(
        plan,
        steps=tuple(replace(step, undo=way(step.undo)) for step in plan.steps),
        afterwards=tuple(map(way, plan.afterwards)),
        instead=tuple(map(way, plan.instead)),
    )


def _with_properties(line: str, file: str) -> str:
    if not line.startswith(("kelpie ", "kafka-")):
        return line
    words = shlex.split(line)
    for at, word in enumerate(words):
        if word in _ADDRESS:
            return shlex.join([*words[: at + 2], "--command-config", file, *words[at + 2 :]])
    return line
