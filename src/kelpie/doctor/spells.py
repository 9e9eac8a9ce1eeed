"""Spells of time: when several brokers were away at once."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kelpie.doctor.case import Outage
from kelpie.doctor.finding import Evidence
from kelpie.model.time import Instant
from kelpie.observations import PartitionView


class Spell(NamedTuple):
    """From a beginning, None if nobody saw it, to an end."""

    since: Instant | None
    until: Instant
    evidence: Evidence


def all_at_once(outages: Sequence[Sequence[Outage]]) -> Iterator[Spell]:
    """Spells, now over, in which every one of these brokers was away; the last one first."""
    ends = sorted(
        {outage.until for own in outages for outage in own if outage.until is not None}, reverse=True
    )
    for until in ends:
        # Those who were away right before somebody came back.
        away = [
            next((it for it in own if (it.at_latest or 0) < until and (it.until or until) >= until), None)
            for own in outages
        ]
        if away and all(away):
            last = max((it for it in away if it is not None), key=lambda it: it.since or 0)
            yield Spell(last.since, until, Evidence(last.text, last.source, last.since))


def without_leader(views: Iterable[PartitionView]) -> Iterator[tuple[PartitionView, PartitionView]]:
    """Spells, now over, in which a partition was seen without a leader: the first view of it, and the first
    one with a leader again. `views` are in the order of their times.
    """
    first: PartitionView | None = None
    for view in views:
        if view.leader < 0:
            first = first or view
        elif first is not None:
            yield first, view
            first = None
