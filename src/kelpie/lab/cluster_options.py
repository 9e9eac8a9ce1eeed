"""The arguments of a cluster, and what they mean as settings of its brokers."""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from kelpie.attribution.plan import Plan
from kelpie.lab.network import BrokerNetwork


class ClusterOptions(TypedDict, total=False):
    """What `Cluster` takes beside the number of brokers; its docstring explains them."""

    racks: Sequence[str | None] | None
    offsets_partitions: int | None
    replication: int | None
    config: Mapping[str, object] | None
    persona: str
    port: int | None
    control_port: int | None
    first_node_id: int
    log_folder: Path | None
    attribution: str | type[Plan] | None
    zookeeper: str | None
    network: BrokerNetwork | None
    wall: Callable[[], float]
    rng: random.Random | None


def default_settings(brokers: int, offsets_partitions: int | None, replication: int | None) -> dict[str, str]:
    """By Kafka's names; what is left out is as in Kafka, as far as there are brokers."""
    internal = min(3, brokers) if replication is None else replication
    settings = {
        "offsets.topic.replication.factor": str(internal),
        "transaction.state.log.replication.factor": str(internal),
        "transaction.state.log.min.isr": str(min(2, internal)),
    }
    if replication is not None:
        settings["default.replication.factor"] = str(replication)
    if offsets_partitions is not None:
        settings["offsets.topic.num.partitions"] = str(offsets_partitions)
    return settings


def settings_as_text(given: Mapping[str, object]) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()
    }
