"""Which groups a page lists, and in which order: as its address says."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kelpie.doctor.finding import Severity
from kelpie.doctor.overview import ORDERS, GroupOverview
from kelpie.web.language import N_
from kelpie.web.listing import matching, number_in, pattern_in
from kelpie.web.snapshot import Snapshot

TITLES = {
    "worst": N_("Worst finding"),
    "name": N_("Group"),
    "members": N_("Members"),
    "lag": N_("Lag"),
    "lag-time": N_("Lag in time"),
    "lag-per-min": N_("Lag per minute"),
    "last-commit": N_("Last commit"),
}
"""Of the columns by which a list can be sorted."""


@dataclass(frozen=True, slots=True)
class Choice:
    pattern: str = ""
    severity: str = ""
    sort: str = "worst"
    only_with_lag: bool = False
    offsets_partition: int | None = None
    coordinator: int | None = None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Choice":
        """What the address asks for; what it asks for wrongly is left out."""
        severity, sort = query.get("severity", ""), query.get("sort", "")
        return cls(
            pattern_in(query),
            severity if severity.upper() in Severity.__members__ else "",
            sort if sort in ORDERS else "worst",
            query.get("lag") == "some",
            number_in(query, "offsets-partition"),
            number_in(query, "coordinator"),
        )

    def order(self, row: GroupOverview) -> Any:
        return ORDERS[self.sort](row)


def ordered(look: Snapshot, choice: Choice) -> list[GroupOverview]:
    """All groups of a look; each order is made once."""
    return look.kept(f"groups by {choice.sort}", lambda made: sorted(made.groups, key=choice.order))


def chosen(rows: Iterable[GroupOverview], choice: Choice) -> list[GroupOverview]:
    """In the order that they come in."""
    rows = list(rows)
    names = matching({row.group for row in rows}, choice.pattern) if choice.pattern else None
    least = Severity.of(choice.severity) if choice.severity else None
    return [
        row
        for row in rows
        if (names is None or row.group in names)
        and (not choice.only_with_lag or row.lag)
        and (least is None or (row.worst is not None and row.worst.severity >= least))
        and choice.offsets_partition in (None, row.offsets_partition)
        and choice.coordinator in (None, row.coordinator)
    ]
