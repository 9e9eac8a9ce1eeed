from dataclasses import dataclass

from kelpie.client.admin.asking import GROUPS_PER_REQUEST, PARTITIONS_PER_REQUEST


@dataclass(frozen=True, slots=True)
class SurveyOptions:
    """How much is asked: everything by default."""

    offsets: bool = True
    """Committed offsets."""
    ends: bool = True
    """Topics and partitions that groups read, and where they begin and end."""
    transactions: bool = True
    """Open transactions, which hold a last stable offset back."""
    epochs: bool = True
    """Where leader epochs of commits end, if the leader has changed since."""
    settings: bool = True
    look_back_s: tuple[int, ...] = (15, 60, 600, 3600, 86_400)
    """Where logs ended so many seconds ago, for rates from one survey. Each costs one request a leader."""
    groups_per_request: int = GROUPS_PER_REQUEST
    partitions_per_request: int = PARTITIONS_PER_REQUEST
    most_views: int = 200_000
    """Up to so many rows, every broker is asked how it sees the topics; beyond that, two brokers."""
