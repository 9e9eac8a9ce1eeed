"""Times of observations (milliseconds) and times of tables, one to the other."""

from datetime import UTC, datetime

from kelpie.model.time import Instant


def moment(at: Instant | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at / 1000, UTC)


def instant(at: datetime | None) -> Instant | None:
    """The reverse of `moment`. Spark hands out times without a zone; they are in UTC here."""
    if at is None:
        return None
    return round((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000)
