"""Which groups a page lists, and in which order: as its address says."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from kelpie.doctor.finding import Severity
from kelpie.doctor.overview import ORDERS, GroupOverview
from kelpie.model.selection import Selection
from kelpie.web.language import N_

SHOWN = 100
"""Groups on a page."""
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
_LONGEST_PATTERN = 300
_LONGEST_TIME = 40
_LAST = 10_000_000


@dataclass(frozen=True, slots=True)
class Choice:
    pattern: str = ""
    severity: str = ""
    sort: str = "worst"
    only_with_lag: bool = False
    first: int = 0
    at: str = ""
    """The time of the look, as the address has it."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Choice":
        """What the address asks for; what it asks for wrongly is left out."""
        severity, sort, first = query.get("severity", ""), query.get("sort", ""), query.get("first", "0")
        return cls(
            query.get("pattern", "")[:_LONGEST_PATTERN],
            severity if severity.upper() in Severity.__members__ else "",
            sort if sort in ORDERS else "worst",
            query.get("lag") == "some",
            min(int(first), _LAST) if first.isascii() and first.isdecimal() and len(first) < 9 else 0,
            query.get("at", "")[:_LONGEST_TIME],
        )

    def order(self, row: GroupOverview) -> Any:
        return ORDERS[self.sort](row)

    def address(self, **changed: Any) -> str:
        """The query of the same choice but for what is named. A new order or choice begins at the first."""
        other = replace(self, **{"first": 0, **changed})
        words = {
            "pattern": other.pattern,
            "severity": other.severity,
            "sort": "" if other.sort == "worst" else other.sort,
            "lag": "some" if other.only_with_lag else "",
            "first": str(other.first) if other.first else "",
            "at": other.at,
        }
        return "?" + urlencode({name: word for name, word in words.items() if word})


def chosen(rows: Iterable[GroupOverview], choice: Choice) -> list[GroupOverview]:
    """A pattern without * or ? stands for names that contain it."""
    pattern = choice.pattern
    if pattern and not set("*?[") & set(pattern):
        rows = [row for row in rows if pattern.casefold() in row.group.casefold()]
    elif pattern:
        rows = list(rows)
        names = set(Selection([pattern], ()).chosen({row.group for row in rows}))
        rows = [row for row in rows if row.group in names]
    least = Severity.of(choice.severity) if choice.severity else None
    kept = [
        row
        for row in rows
        if (not choice.only_with_lag or row.lag)
        and (least is None or (row.worst is not None and row.worst.severity >= least))
    ]
    return sorted(kept, key=choice.order)
