"""What `import kelpie` offers: everything that the commands do, for programs. docs/python.md explains it.

A function of `kelpie` waits for its result; the one of the same name in `kelpie.aio` is awaited. Both are
one function (`both_ways.py`). A name is imported when it is first used: `import kelpie` costs nothing.

places             how a program names a cluster
examining          doctor, groups, explain
whereabouts        where, names
looking            peek, probe, consume, collect
repair_requests    what each repair looks at; shared with the commands
repairs            plans, apply, undo
offsets, tables    what disks and tables know; the pipeline
acknowledging, laboratory, simulating    ack, lab, simulate
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kelpie.api import acknowledging as _acknowledging
    from kelpie.api import aio
    from kelpie.api import examining as _examining
    from kelpie.api import laboratory as _laboratory
    from kelpie.api import looking as _looking
    from kelpie.api import offsets as _offsets
    from kelpie.api import repairs as _repairs
    from kelpie.api import simulating as _simulating
    from kelpie.api import tables as _tables
    from kelpie.api import whereabouts as _whereabouts
    from kelpie.api.both_ways import iterating, waiting
    from kelpie.api.examining import GroupsSeen, Look, broker_losses, explain, groups_of, rules
    from kelpie.api.laboratory import scenarios
    from kelpie.api.places import settings
    from kelpie.api.repairs import PlannedRepair
    from kelpie.api.whereabouts import names
    from kelpie.client.admin.admin import Admin
    from kelpie.client.admin.synchronous import SyncAdmin
    from kelpie.client.client_errors import ClientError
    from kelpie.client.settings import Settings
    from kelpie.cluster.whereabouts import Whereabouts
    from kelpie.doctor.broker_loss import BrokerLoss
    from kelpie.doctor.diagnosis import Diagnosis
    from kelpie.doctor.finding import Finding, Severity
    from kelpie.doctor.overview import GroupOverview
    from kelpie.examination.examination import Changes, Examination, Examined
    from kelpie.guard.handler import GuardHandler
    from kelpie.guard.runner import Guard, GuardOptions
    from kelpie.lab.cluster import Cluster as LabCluster
    from kelpie.lab.synchronous import SyncCluster as SyncLabCluster
    from kelpie.model.kelpie_error import KelpieError
    from kelpie.model.names import TopicPartition
    from kelpie.real.cluster import RealCluster
    from kelpie.real.zookeeper import RealZooKeeper
    from kelpie.repair.applying import RepairResult
    from kelpie.repair.change_states import ChangeState
    from kelpie.repair.mapping_survey import MappingTree
    from kelpie.repair.mappings import MappingOptions
    from kelpie.repair.migrate_offsets import Migration
    from kelpie.repair.plan import CannotRepair, Plan
    from kelpie.repair.reassign import ReassignmentOptions
    from kelpie.repair.reset_targets import ShiftBy, ToEarliest, ToLatest, ToTime
    from kelpie.store import Store
    from kelpie.zookeeper.simulation.group import GroupSettings

    examine = waiting(_examining.examine)
    groups = waiting(_examining.groups)
    where = waiting(_whereabouts.where)
    peek = waiting(_looking.peek)
    probe = waiting(_looking.probe)
    apply = waiting(_repairs.apply)
    plan_rehome = waiting(_repairs.plan_rehome)
    plan_reset = waiting(_repairs.plan_reset)
    plan_reset_to_last_known = waiting(_repairs.plan_reset_to_last_known)
    plan_elect = waiting(_repairs.plan_elect)
    plan_reassign_offsets_topic = waiting(_repairs.plan_reassign_offsets_topic)
    plan_migrate_offsets = waiting(_repairs.plan_migrate_offsets)
    check_mappings = waiting(_repairs.check_mappings)
    plan_mappings_repair = waiting(_repairs.plan_mappings_repair)
    changes_made = waiting(_repairs.changes_made)
    plan_undo = waiting(_repairs.plan_undo)
    play_scenario = waiting(_laboratory.play_scenario)
    watch = iterating(_examining.watch)
    consume = iterating(_looking.consume)
    collect_rounds = iterating(_looking.collect_rounds)
    examination_of = _examining.examination_of
    read_tables = _examining.read_tables
    read_evidence = _examining.read_evidence
    recover_offsets = _offsets.recover_offsets
    removed_offsets = _offsets.removed_offsets
    run_pipeline = _tables.run_pipeline
    acknowledge = _acknowledging.acknowledge
    unacknowledge = _acknowledging.unacknowledge
    list_acknowledgements = _acknowledging.list_acknowledgements
    simulate_attribution = _simulating.simulate_attribution
    simulate_zookeeper_rebalance = _simulating.simulate_zookeeper_rebalance

__all__ = [
    "Admin",
    "BrokerLoss",
    "CannotRepair",
    "ChangeState",
    "Changes",
    "ClientError",
    "Diagnosis",
    "Examination",
    "Examined",
    "Finding",
    "GroupOverview",
    "GroupSettings",
    "GroupsSeen",
    "Guard",
    "GuardHandler",
    "GuardOptions",
    "KelpieError",
    "LabCluster",
    "Look",
    "MappingOptions",
    "MappingTree",
    "Migration",
    "Plan",
    "PlannedRepair",
    "RealCluster",
    "RealZooKeeper",
    "ReassignmentOptions",
    "RepairResult",
    "Settings",
    "Severity",
    "ShiftBy",
    "Store",
    "SyncAdmin",
    "SyncLabCluster",
    "ToEarliest",
    "ToLatest",
    "ToTime",
    "TopicPartition",
    "Whereabouts",
    "acknowledge",
    "aio",
    "apply",
    "broker_losses",
    "changes_made",
    "check_mappings",
    "collect_rounds",
    "consume",
    "examination_of",
    "examine",
    "explain",
    "groups",
    "groups_of",
    "list_acknowledgements",
    "names",
    "peek",
    "plan_elect",
    "plan_mappings_repair",
    "plan_migrate_offsets",
    "plan_reassign_offsets_topic",
    "plan_rehome",
    "plan_reset",
    "plan_reset_to_last_known",
    "plan_undo",
    "play_scenario",
    "probe",
    "read_evidence",
    "read_tables",
    "recover_offsets",
    "removed_offsets",
    "rules",
    "run_pipeline",
    "scenarios",
    "settings",
    "simulate_attribution",
    "simulate_zookeeper_rebalance",
    "unacknowledge",
    "watch",
    "where",
]

COROUTINES = {
    "examine": "examining",
    "groups": "examining",
    "where": "whereabouts",
    "peek": "looking",
    "probe": "looking",
    "apply": "repairs",
    "plan_rehome": "repairs",
    "plan_reset": "repairs",
    "plan_reset_to_last_known": "repairs",
    "plan_elect": "repairs",
    "plan_reassign_offsets_topic": "repairs",
    "plan_migrate_offsets": "repairs",
    "check_mappings": "repairs",
    "plan_mappings_repair": "repairs",
    "changes_made": "repairs",
    "plan_undo": "repairs",
    "play_scenario": "laboratory",
}
"""Awaited in `aio`, waited for here: the module of each."""
ITERATORS = {
    "watch": "examining",
    "consume": "looking",
    "collect_rounds": "looking",
}
"""Generators: asynchronous in `aio`, plain ones here."""
THREADED = {
    "examination_of": "examining",
    "read_tables": "examining",
    "read_evidence": "examining",
    "recover_offsets": "offsets",
    "removed_offsets": "offsets",
    "run_pipeline": "tables",
    "acknowledge": "acknowledging",
    "unacknowledge": "acknowledging",
    "list_acknowledgements": "acknowledging",
    "simulate_attribution": "simulating",
    "simulate_zookeeper_rebalance": "simulating",
}
"""Work that waits for no network: in `aio`, it runs in a thread."""
_PLAIN = {
    "settings": "api.places",
    "explain": "api.examining",
    "rules": "api.examining",
    "groups_of": "api.examining",
    "names": "api.whereabouts",
    "scenarios": "api.laboratory",
    "broker_losses": "api.examining",
    "Admin": "client.admin.admin",
    "SyncAdmin": "client.admin.synchronous",
    "Settings": "client.settings",
    "Store": "store",
    "TopicPartition": "model.names",
    "KelpieError": "model.kelpie_error",
    "ClientError": "client.client_errors",
    "CannotRepair": "repair.plan",
    "Examination": "examination.examination",
    "Examined": "examination.examination",
    "Changes": "examination.examination",
    "Look": "api.examining",
    "GroupsSeen": "api.examining",
    "GroupOverview": "doctor.overview",
    "Diagnosis": "doctor.diagnosis",
    "Finding": "doctor.finding",
    "Severity": "doctor.finding",
    "BrokerLoss": "doctor.broker_loss",
    "Whereabouts": "cluster.whereabouts",
    "Plan": "repair.plan",
    "PlannedRepair": "api.repairs",
    "RepairResult": "repair.applying",
    "ChangeState": "repair.change_states",
    "ToEarliest": "repair.reset_targets",
    "ToLatest": "repair.reset_targets",
    "ToTime": "repair.reset_targets",
    "ShiftBy": "repair.reset_targets",
    "ReassignmentOptions": "repair.reassign",
    "Migration": "repair.migrate_offsets",
    "MappingTree": "repair.mapping_survey",
    "MappingOptions": "repair.mappings",
    "LabCluster": "lab.cluster:Cluster",
    "SyncLabCluster": "lab.synchronous:SyncCluster",
    "RealCluster": "real.cluster",
    "RealZooKeeper": "real.zookeeper",
    "Guard": "guard.runner",
    "GuardOptions": "guard.runner",
    "GuardHandler": "guard.handler",
    "GroupSettings": "zookeeper.simulation.group",
}
"""Quick functions, and classes: the same in both. Their module, and their name there if it is another."""


if not TYPE_CHECKING:  # It would have type checkers take any name for one that exists.

    def __getattr__(name: str) -> Any:
        if name == "aio":
            return import_module("kelpie.api.aio")
        if name in _PLAIN:
            module, _, original = _PLAIN[name].partition(":")
            found = getattr(import_module(f"kelpie.{module}"), original or name)
        elif name in COROUTINES or name in ITERATORS:
            from kelpie.api.both_ways import iterating, waiting  # noqa: PLC0415 - asyncio takes its time.

            wrap = waiting if name in COROUTINES else iterating
            found = wrap(original_of(name))
        elif name in THREADED:
            found = original_of(name)
        else:
            raise AttributeError(f"module 'kelpie' has no attribute {name!r}")
        globals()[name] = found
        return found


def original_of(name: str) -> Any:
    """The function itself, as its module has it."""
    module = (COROUTINES | ITERATORS | THREADED)[name]
    return getattr(import_module(f"kelpie.api.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
