"""Periods in which brokers were away: one broker, or several at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from kelpie.model.time import Instant


@dataclass(frozen=True, slots=True)
class Outage:
    """A broker was away. `since` is None when nobody saw it go, `until` is None while it is away."""

    node_id: int
    since: Instant | None
    until: Instant | None = None
    orderly: bool = False
    """The broker was shut down, and its log says so."""
    text: str = ""
    """The log line, or the state, that shows the outage."""
    source: str = ""
    seen: Instant | None = None
    """When the broker was first seen to be away, if nobody saw it go."""
    alive_at: Instant | None = None
    """When the broker was last seen alive before that."""

    @property
    def at_latest(self) -> Instant | None:
        """The broker was away from this time on."""
        return self.since if self.since is not None else self.seen

    @property
    def at_earliest(self) -> Instant | None:
        """The broker was there until this time."""
        return self.since if self.since is not None else self.alive_at


class SharedOutage(NamedTuple):
    """A period, now over, in which several brokers were away at once."""

    last: Outage
    """Of the broker that went last: the period begins with it."""
    until: Instant


def shared_outages(outages_by_broker: Sequence[Sequence[Outage]]) -> Iterator[SharedOutage]:
    """Periods, now over, in which every one of these brokers was away; the last one first."""
    ends = {outage.until for outages in outages_by_broker for outage in outages if outage.until is not None}
    for until in sorted(ends, reverse=True):
        # Outages that lasted until right before a broker came back: at most one of each broker.
        away = [
            [outage for outage in outages if (outage.at_latest or 0) < until <= (outage.until or until)][:1]
            for outages in outages_by_broker
        ]
        if away and all(away):
            yield SharedOutage(max(chain.from_iterable(away), key=lambda outage: outage.since or 0), until)
