"""What one look at a cluster leaves to the next, while it is watched: a look then asks what has changed.

- The history of commits is read on from where the last look stopped.
- Where logs ended at a time in the past does not change: it is asked once.
- Settings, and the sizes of the offsets topic, are asked once a minute.

Connections are not kept: whether a broker takes a new one is part of what a look sees.
"""

from kelpie.client.kept_history import KeptHistory
from kelpie.model.time import Instant
from kelpie.observations import LogEnds, Observations
from kelpie.observations.positions import BY_TIMESTAMPS

_FRESH_MS = 60_000


class KeptAnswers:
    """Of one cluster at a time."""

    def __init__(self) -> None:
        self._cluster: str | None = None
        self._forget()

    def _forget(self) -> None:
        self.history = KeptHistory()
        self._past_ends: list[LogEnds] = []
        self._slow = Observations()
        """What changes seldom."""
        self._asked_at: Instant | None = None

    def begin(self, cluster: str | None) -> None:
        """A look begins. Nothing is used of another cluster that answers at the same address."""
        if cluster != self._cluster:
            self._forget()
            self._cluster = cluster

    def fresh(self, now: Instant) -> Observations:
        """Settings and sizes that need not be asked for."""
        is_fresh = self._asked_at is not None and 0 <= now - self._asked_at < _FRESH_MS
        return self._slow if is_fresh else Observations()

    def past_ends(self, since: Instant, until: Instant) -> list[LogEnds]:
        """Where logs ended within this time, as an earlier look has asked."""
        return [row for row in self._past_ends if row.at is not None and since <= row.at <= until]

    def take(self, asked: Observations, used: list[LogEnds], now: Instant) -> None:
        """What a look has asked brokers, and which ends of the past it has used."""
        if not self.fresh(now).settings:
            self._slow = Observations(sizes=list(asked.sizes))
            self._asked_at = now
        # A broker or a topic that is new has been asked now.
        self._slow.settings = list(asked.settings)
        self._past_ends = [*used, *(row for row in asked.ends if row.source.endswith(BY_TIMESTAMPS))]
