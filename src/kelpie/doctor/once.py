"""Work that several rules need, done once: for the case, or the cluster, that was looked at last.

All rules look at one case before the next one comes, so more need not be kept: of ten thousand groups, one
group's share.
"""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

Subject = TypeVar("Subject")
Result = TypeVar("Result")
Further = ParamSpec("Further")


def once(
    work: Callable[Concatenate[Subject, Further], Result],
) -> Callable[Concatenate[Subject, Further], Result]:
    """Keeps the results for the last subject. Further arguments must be hashable, and given by position."""
    last: Subject | None = None
    known: dict[tuple[Hashable, ...], Result] = {}

    @wraps(work)
    def kept(subject: Subject, /, *further: Further.args, **named: Further.kwargs) -> Result:
        nonlocal last, known
        if subject is not last:
            last, known = subject, {}
        key: tuple[Hashable, ...] = further
        if key not in known:
            known[key] = work(subject, *further, **named)
        return known[key]

    return kept
