"""When surveys last reached each broker, and when they last did not: all that is kept of a broker's absences.

The store keeps one `Presence` for each broker. `rows` turns it into rows, with which the next survey knows
that a broker came back a moment ago, or for how long it has been away.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kelpie.model.time import Instant
from kelpie.observations.cluster import BrokerView
from kelpie.observations.earlier import EARLIER_SURVEY

QUORUM = "the controllers' quorum"
"""The source of rows that say when a broker that is away now last fetched from the leader of the quorum."""


class Presence(NamedTuple):
    """One broker, as surveys saw it. Times are those of surveys; None: no survey saw it so."""

    alive_at: Instant | None = None
    """When it was last reached."""
    before: Instant | None = None
    """When it was last reached before its last absence."""
    away_since: Instant | None = None
    """The first survey of its last absence."""
    back_at: Instant | None = None
    """The first survey after that absence that reached it again."""

    def seen(self, alive: bool, at: Instant) -> "Presence":
        """With one survey more."""
        is_away = self.away_since is not None and self.back_at is None
        if not alive:
            return self if is_away else Presence(self.alive_at, self.alive_at, at)
        return self._replace(alive_at=at, back_at=at if is_away else self.back_at)

    def rows(self, node_id: int) -> Iterator[BrokerView]:
        """By time. Without addresses: other rows have them."""
        reached = (self.before, self.back_at, self.alive_at)
        reports = [(at, True) for at in dict.fromkeys(reached) if at is not None]
        if self.away_since is not None:
            reports.append((self.away_since, False))
        for at, alive in sorted(reports):
            reason = "" if alive else f"{EARLIER_SURVEY} could not reach it"
            yield BrokerView(node_id, alive=alive, reason=reason, at=at, source=EARLIER_SURVEY)
