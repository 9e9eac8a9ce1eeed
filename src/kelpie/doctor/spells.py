"""Spells of time: when several brokers were away at once."""

from collections.abc import Sequence
from typing import NamedTuple

from kelpie.doctor.case import Outage
from kelpie.doctor.finding import Evidence
from kelpie.model.time import Instant


class Spell(NamedTuple):
    """From a beginning, None if nobody saw it, to an end."""

    since: Instant | None
    until: Instant
    evidence: Evidence


def all_at_once(outages: Sequence[Sequence[Outage]]) -> Spell | None:
    """The last spell, now over, in which every one of these brokers was away. None: there was none."""
    ends = sorted(
        {outage.until for own in outages for outage in own if outage.until is not None}, reverse=True
    )
    for until in ends:
        # Those who were away right before somebody came back.
        away = [
            next((it for it in own if (it.since or 0) < until and (it.until or until) >= until), None)
            for own in outages
        ]
        if away and all(away):
            last = max((it for it in away if it is not None), key=lambda it: it.since or 0)
            return Spell(last.since, until, Evidence(last.text, last.source, last.since))
    return None
