"""What passes by itself is asked again before it counts: an election, a restart, a short load.

While a broker restarts, others name different leaders for a moment, the named one denies or still loads, or
it has just gone. So a survey asks again for the groups that this concerns, a few times within some seconds,
and only for these. What then still stands is no passing state. The earlier answers stay among the rows: they
show for how long it has lasted.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice

from kelpie.client.admin.asking import Asking, together
from kelpie.client.admin.coordinators import GroupCoordinators
from kelpie.client.survey.brokers import meet_again
from kelpie.errors import ErrorCode

AskCoordinator = Callable[[int, Sequence[str]], Awaitable[None]]
"""Asks a broker for the states and committed offsets of groups."""

_AGAIN_AFTER_S = (0.5, 1.0, 2.0)
_PASSING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


async def settle(
    asking: Asking, coordinators: GroupCoordinators, groups: Iterable[str], ask: AskCoordinator
) -> None:
    """Asks again for groups whose coordinator is disputed, cannot be reached, or does not serve yet."""
    if not coordinators.count:
        return
    unsettled = _unsettled(asking, coordinators, groups, 0, 0)
    for pause_s in _AGAIN_AFTER_S:
        if not unsettled:
            return
        await asyncio.sleep(pause_s)
        states, answers = len(asking.seen.states), len(asking.seen.answers)
        views = await meet_again(asking)
        coordinators = GroupCoordinators(asking, views, {})
        if not coordinators.count:
            return
        await coordinators.look_up(coordinators.disputed, unsettled)
        again = frozenset(unsettled)
        asking.seen.unasked = [
            row for row in asking.seen.unasked if row.kind != "group" or row.name not in again
        ]
        plan = coordinators.by_node(unsettled)
        await together(*(ask(node, names) for node, names in plan.items()))
        unsettled = _unsettled(asking, coordinators, unsettled, states, answers)


def _unsettled(
    asking: Asking, coordinators: GroupCoordinators, groups: Iterable[str], states: int, answers: int
) -> list[str]:
    """By the rows from these places on. Who has no leader at all is not waited for: no broker is there."""
    refused = {row.group for row in islice(asking.seen.states, states, None) if row.error in _PASSING}
    refused |= {
        row.group
        for row in islice(asking.seen.answers, answers, None)
        if row.asked == "OffsetFetch" and row.error in _PASSING
    }
    partitions = {partition for partition in coordinators.disputed if coordinators.leaders[partition] >= 0}
    if not refused and not partitions:
        return []
    return [group for group in groups if group in refused or coordinators.partition_of(group) in partitions]
