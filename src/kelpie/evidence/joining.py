"""States and members of a group are described by two commands, in two files: together they are one row."""

from collections.abc import Iterable
from dataclasses import replace

from kelpie.evidence.dating import Dated
from kelpie.observations import GroupState

_SAME_TIME_MS = 300_000


def join_states(outputs: Iterable[Dated]) -> None:
    """Leaves one row per group and batch, in the output that says most."""
    rows: dict[tuple[object, str], list[tuple[Dated, GroupState]]] = {}
    for dated in outputs:
        for state in dated.output.found.states:
            rows.setdefault((dated.batch, state.group), []).append((dated, state))
    for same in rows.values():
        while same:
            first = max(same, key=lambda pair: _worth(pair[1]))
            together = [pair for pair in same if _near(pair[0], first[0])]
            same[:] = [pair for pair in same if pair not in together]
            for dated, state in together:
                dated.output.found.states.remove(state)
            joined = first[1]
            for _, state in together:
                joined = _joined(joined, state)
            first[0].output.found.states.append(joined)


def _worth(state: GroupState) -> tuple[bool, bool]:
    return state.coordinator >= 0, bool(state.members)


def _near(one: Dated, other: Dated) -> bool:
    if one.at is None or other.at is None:
        return one.at is other.at
    return abs(one.at - other.at) <= _SAME_TIME_MS


def _joined(best: GroupState, other: GroupState) -> GroupState:
    return replace(
        best,
        state=best.state or other.state,
        kind=other.kind if other.members and not best.members else best.kind,
        protocol=best.protocol or other.protocol,
        epoch=max(best.epoch, other.epoch),
        members=best.members or other.members,
        coordinator=max(best.coordinator, other.coordinator),
    )
