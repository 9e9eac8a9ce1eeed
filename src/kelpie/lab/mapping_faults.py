"""Faults of the mapping store: a request of a broker is held back, or refused."""

import asyncio
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypedDict

from kelpie.attribution.requests import Request
from kelpie.lab.faults import Fault
from kelpie.lab.lab_errors import LabError

OPERATIONS = ("put", "create", "delete", "read", "readchildren")


class MappingRequests(TypedDict, total=False):
    """The fields of a filter, as keyword arguments. `MappingFilter` says what they mean."""

    node: int
    operation: str
    path: str


@dataclass(frozen=True, slots=True)
class MappingFilter:
    """Which requests; one that is left out matches all. Texts are shell patterns."""

    node: int | None = None
    """The broker that asks."""
    operation: str | None = None
    """put, create, delete, read or readchildren."""
    path: str | None = None

    def __post_init__(self) -> None:
        if self.operation is not None and self.operation not in OPERATIONS:
            raise LabError(f"No request is called {self.operation!r}; there are {', '.join(OPERATIONS)}.")

    def matches(self, request: Request) -> bool:
        return (
            self.node in (None, request.broker)
            and self.operation in (None, type(request).__name__.lower())
            and (self.path is None or fnmatchcase(request.path, self.path))
        )

    def __str__(self) -> str:
        given = ((name, getattr(self, name)) for name in self.__slots__)
        return " ".join(f"{name}={value}" for name, value in given if value is not None) or "all requests"


class MappingFault(Fault):
    """Strikes requests to the mapping store: refuses them, or holds them until it is lifted.

    What the same broker asks after a request that is held waits behind it, as in a session of ZooKeeper.
    """

    def __init__(self, wanted: MappingFilter, *, refuses: bool, count: int | None) -> None:
        what = "refused" if refuses else "held until lifted"
        super().__init__(f"{wanted} to the mapping store {what}")
        self.refuses = refuses
        self._wanted = wanted
        self._left = count
        self._lifted = asyncio.Event()

    def strikes(self, request: Request) -> bool:
        if not self.active or self._left == 0 or not self._wanted.matches(request):
            return False
        if self._left is not None:
            self._left -= 1
        self.strike()
        return True

    async def passed(self) -> None:
        """Returns when it is lifted."""
        await self._lifted.wait()

    def lift(self) -> None:
        super().lift()
        self._lifted.set()
