"""The brokers as the consumer knows them, and which of them to ask when any will do.

The least loaded node, as Kafka's NetworkClient chooses it, beginning at a place drawn by lot: one that is
connected and has nothing under way; else the one with the least under way; else one that is being connected
to; else the one whose last attempt is the longest ago. One that has just failed is left alone for a while.
Bootstrap addresses serve as long as no broker is known, and again when none that is known can be had.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kelpie.consumer.backoff import Backoff
from kelpie.consumer.config import ConsumerConfig
from kelpie.consumer.outcome import Failure, FailureKind, Place
from kelpie.model.time import Instant


@dataclass(slots=True)
class _Line:
    """A connection, as far as it can be told from what becomes of requests."""

    backoff: Backoff
    under_way: int = 0
    stands: bool = False
    tried_at: Instant = -1


@dataclass(slots=True)
class Nodes:
    config: ConsumerConfig
    bootstrap: tuple[Place, ...]
    draw: Callable[[int], int]
    """A number below the one given: chance is an argument."""
    _brokers: dict[int, Place] = field(default_factory=dict)
    _lines: dict[Place, _Line] = field(default_factory=dict)

    @classmethod
    def at(
        cls, config: ConsumerConfig, addresses: Iterable[tuple[str, int]], draw: Callable[[int], int]
    ) -> "Nodes":
        places = tuple(Place(-1 - at, host, port) for at, (host, port) in enumerate(addresses))
        assert places, "a consumer needs an address to begin with"
        return cls(config, places, draw)

    def heard_of(self, brokers: dict[int, tuple[str, int]]) -> None:
        if brokers:
            self._brokers = {node_id: Place(node_id, host, port) for node_id, (host, port) in brokers.items()}
        known = {*self._brokers.values(), *self.bootstrap}
        for place, line in tuple(self._lines.items()):
            if place not in known and not place.for_group and not line.under_way:
                del self._lines[place]

    def broker(self, node_id: int | None) -> Place | None:
        return None if node_id is None else self._brokers.get(node_id)

    def least_loaded(self, now: Instant) -> Place | None:
        """None when all have just failed: then it is to be tried later (`next_free`)."""
        return self._choose(tuple(self._brokers.values()), now) or self._choose(self.bootstrap, now)

    def next_free(self, now: Instant) -> Instant:
        """When a node can be asked again, if none can now."""
        waits = [self._line(place).backoff.until for place in (*self._brokers.values(), *self.bootstrap)]
        return max(now + 1, min(waits))

    def is_unavailable(self, place: Place, now: Instant) -> bool:
        """Whether it has just failed, and no new attempt is due."""
        line = self._line(place)
        return not line.stands and not line.backoff.over(now)

    # What becomes of requests.

    def asked(self, place: Place, now: Instant) -> None:
        line = self._line(place)
        line.under_way += 1
        if not line.stands:
            line.tried_at = now

    def answered(self, place: Place) -> None:
        line = self._line(place)
        line.under_way -= 1
        line.stands = True
        line.backoff.succeeded()

    def unanswered(self, place: Place, failure: Failure, now: Instant) -> None:
        line = self._line(place)
        line.under_way -= 1
        if failure.breaks_connection:
            if line.stands or line.backoff.over(now):  # One failure, however many requests it took along.
                line.backoff.failed(now)
            line.stands = False
        elif failure.kind is FailureKind.UNSUPPORTED:
            line.stands = True

    def _choose(self, places: tuple[Place, ...], now: Instant) -> Place | None:
        if not places:
            return None
        start = self.draw(len(places))
        turned = places[start:] + places[:start]
        free = [place for place in turned if not self.is_unavailable(place, now)]
        return min(free, key=self._rank, default=None)

    def _rank(self, place: Place) -> tuple[int, int]:
        line = self._line(place)
        if line.stands:
            return 0, line.under_way
        if line.under_way:
            return 1, 0
        return 2, line.tried_at

    def _line(self, place: Place) -> _Line:
        known = self._lines.get(place)
        if known is None:
            config = self.config
            backoff = Backoff(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms)
            known = self._lines[place] = _Line(backoff)
        return known
