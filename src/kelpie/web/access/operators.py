"""The person behind a request."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request
from starlette.types import Scope

from kelpie.web.access.addresses import Origin

_KEY = "kelpie.operator"
ORIGIN = "kelpie.origin"
"""Where in a scope the gate notes where the request is from."""


@dataclass(frozen=True, slots=True)
class Operator:
    name: str
    """As the login has it; empty where nobody has to log in."""
    origin: Origin
    can_log_out: bool = False


class Identification(Protocol):
    """How the person behind a request is known."""

    @property
    def open_paths(self) -> Collection[str]:
        """Where people log in; empty where they do that elsewhere."""

    async def operator(self, scope: Scope, origin: Origin) -> Operator | None:
        """None: the person has to log in first."""


def operator_of(request: Request) -> Operator | None:
    """None on pages that nobody has to log in for."""
    found: Operator | None = request.scope.get(_KEY)
    return found


def put(scope: Scope, operator: Operator) -> None:
    scope[_KEY] = operator
