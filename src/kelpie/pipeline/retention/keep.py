"""For how long each layer keeps its rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

LAYERS = ("bronze", "silver", "gold")


@dataclass(frozen=True, slots=True)
class Keep:
    """A layer that is not named keeps its rows for ever."""

    by_layer: Mapping[str, timedelta] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert set(self.by_layer) <= set(LAYERS), "a layer that does not exist"

    def since(self, layer: str, now: datetime) -> date | None:
        """The first day that is kept, in UTC; None: all are. Days are kept whole."""
        time = self.by_layer.get(layer)
        return None if time is None else (now.astimezone(UTC) - time).date()

    def __bool__(self) -> bool:
        return bool(self.by_layer)


FOR_EVER = Keep()
