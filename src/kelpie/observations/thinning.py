"""Which earlier surveys are kept: a few, the closer together the younger they are."""

from collections.abc import Iterable

from kelpie.model.time import Instant

_MINUTE = 60_000
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR

AGES_MS = (20_000, _MINUTE, 5 * _MINUTE, 30 * _MINUTE, 3 * _HOUR, _DAY, 7 * _DAY)
"""One survey is kept for each span between these, the older one of two; nothing is kept beyond the last."""


def kept(moments: Iterable[Instant], now: Instant) -> set[Instant]:
    """Of two in the same span the older one stays, and grows into the next span."""
    found: dict[int, Instant] = {}
    newest: Instant | None = None
    for at in sorted(moments):
        newest = at
        span = next((place for place, age in enumerate(AGES_MS) if now - at < age), None)
        if span is not None:
            found.setdefault(span, at)
    return {*found.values(), *([newest] if newest is not None and now - newest < AGES_MS[-1] else [])}
