"""The lab: a Kafka-compatible cluster of several brokers in this process, and the faults to break it with.

    with SyncCluster(brokers=3) as cluster:
        Producer({"bootstrap.servers": cluster.bootstrap_servers})
        with cluster.fail(ErrorCode.NOT_COORDINATOR, api="Heartbeat", count=3) as fault:
            fault.wait(hits=3)

The names below are imported when they are first used: pytest loads the plugin in this package in every run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kelpie.lab.cluster import Cluster
    from kelpie.lab.faults import Action, Fault, Observation, Observed, RequestFault, Stall
    from kelpie.lab.lab_errors import LabDefect, LabError
    from kelpie.lab.matching import Filter
    from kelpie.lab.synchronous import SyncCluster, SyncFault

__all__ = [
    "Action",
    "Cluster",
    "Fault",
    "Filter",
    "LabDefect",
    "LabError",
    "Observation",
    "Observed",
    "RequestFault",
    "Stall",
    "SyncCluster",
    "SyncFault",
]

_HOMES = {
    "Cluster": "cluster",
    "Filter": "matching",
    "LabDefect": "lab_errors",
    "LabError": "lab_errors",
    "SyncCluster": "synchronous",
    "SyncFault": "synchronous",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'faults')}"), name)
