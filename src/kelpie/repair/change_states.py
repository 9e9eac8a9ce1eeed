"""Whether changes that Kelpie has made are undone, and whether they can be."""

from collections.abc import Iterable
from dataclasses import dataclass

from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.repair.change_records import ChangeRecord
from kelpie.repair.plan import CannotRepair
from kelpie.repair.undo import NOT_UNDONE, noted_states, undo


@dataclass(frozen=True, slots=True)
class ChangeState:
    """A change, and in words whether it is undone."""

    record: ChangeRecord
    state: str


def changes_noted(records: Iterable[ChangeRecord]) -> list[ChangeState]:
    """As the records themselves say."""
    known = list(records)
    states = noted_states(known)
    return [ChangeState(record, states[record.id]) for record in known]


async def asked_states(nodes: Nodes, records: Iterable[ChangeRecord]) -> list[ChangeState]:
    """Of the changes in this cluster: for each that is not undone, the cluster is asked whether it can be."""
    cluster = nodes.cluster_id or ""
    states = [change for change in changes_noted(records) if change.record.cluster == cluster]
    return [
        ChangeState(change.record, await _asked(nodes, change.record))
        if change.state == NOT_UNDONE
        else change
        for change in states
    ]


async def _asked(nodes: Nodes, record: ChangeRecord) -> str:
    try:
        plan = (await undo(nodes, record)).plan
    except (CannotRepair, ClientError) as error:
        return f"cannot be undone: {error}"
    if plan.obstacles:
        return f"cannot be undone: {plan.obstacles[0]}"
    return "can be undone" if plan.steps else "nothing left to undo"
