from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SurveyOptions:
    """How much is asked. Everything, unless told otherwise."""

    offsets: bool = True
    """Committed offsets."""
    ends: bool = True
    """Topics and partitions that groups read, and where they begin and end."""
    transactions: bool = True
    """Who holds a last stable offset back."""
    epochs: bool = True
    """Where leader epochs of commits end, if the leader has changed since."""
    settings: bool = True
    look_back_s: tuple[int, ...] = (15, 60, 600, 3600, 86_400)
    """Where logs ended so many seconds ago: one survey tells rates with it. Costs a request each."""
    groups_per_request: int = 2000
    partitions_per_request: int = 5000
    most_views: int = 200_000
    """Up to so many rows, every broker is asked how it sees the topics; above, two are."""
