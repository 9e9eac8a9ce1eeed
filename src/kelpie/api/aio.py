"""The functions of `kelpie` for code with an event loop: the same names, arguments and results, awaited.

Generators are asynchronous ones. Work that waits for no network runs in a thread.
"""

from typing import TYPE_CHECKING, Any

from kelpie.api import COROUTINES, ITERATORS, THREADED, original_of

if TYPE_CHECKING:
    from kelpie.api import acknowledging as _acknowledging
    from kelpie.api import examining as _examining
    from kelpie.api import offsets as _offsets
    from kelpie.api import simulating as _simulating
    from kelpie.api import tables as _tables
    from kelpie.api.both_ways import in_thread
    from kelpie.api.examining import examine, groups, watch
    from kelpie.api.laboratory import play_scenario
    from kelpie.api.looking import collect_rounds, consume, peek, probe
    from kelpie.api.repairs import (
        apply,
        changes_made,
        check_mappings,
        plan_elect,
        plan_mappings_repair,
        plan_migrate_offsets,
        plan_reassign_offsets_topic,
        plan_rehome,
        plan_reset,
        plan_reset_to_last_known,
        plan_undo,
    )
    from kelpie.api.whereabouts import where

    examination_of = in_thread(_examining.examination_of)
    read_tables = in_thread(_examining.read_tables)
    read_evidence = in_thread(_examining.read_evidence)
    recover_offsets = in_thread(_offsets.recover_offsets)
    removed_offsets = in_thread(_offsets.removed_offsets)
    run_pipeline = in_thread(_tables.run_pipeline)
    acknowledge = in_thread(_acknowledging.acknowledge)
    unacknowledge = in_thread(_acknowledging.unacknowledge)
    list_acknowledgements = in_thread(_acknowledging.list_acknowledgements)
    simulate_attribution = in_thread(_simulating.simulate_attribution)
    simulate_zookeeper_rebalance = in_thread(_simulating.simulate_zookeeper_rebalance)

__all__ = [
    "acknowledge",
    "apply",
    "changes_made",
    "check_mappings",
    "collect_rounds",
    "consume",
    "examination_of",
    "examine",
    "groups",
    "list_acknowledgements",
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
    "run_pipeline",
    "simulate_attribution",
    "simulate_zookeeper_rebalance",
    "unacknowledge",
    "watch",
    "where",
]


if not TYPE_CHECKING:  # It would have type checkers take any name for one that exists.

    def __getattr__(name: str) -> Any:
        if name in COROUTINES or name in ITERATORS:
            found = original_of(name)
        elif name in THREADED:
            from kelpie.api.both_ways import in_thread  # noqa: PLC0415 - asyncio takes its time.

            found = in_thread(original_of(name))
        else:
            raise AttributeError(f"module 'kelpie.aio' has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
