"""A proxy in front of the server has logged people in, and names them in a header of each request."""

from collections.abc import Collection

from starlette.types import Scope

from kelpie.web.access.addresses import Origin
from kelpie.web.access.operators import Operator

_LONGEST_NAME = 255


class HeaderLogin:
    """Believes the header only in requests that a trusted proxy has passed on."""

    open_paths: Collection[str] = ()

    def __init__(self, header: str) -> None:
        self._header = header.lower().encode("latin-1")

    async def operator(self, scope: Scope, origin: Origin) -> Operator | None:
        if not origin.via:
            return None
        sent = [value for name, value in scope["headers"] if name == self._header]
        if len(sent) != 1:  # With two, one may be the client's own.
            return None
        try:
            name = sent[0].decode().strip()
        except UnicodeDecodeError:
            return None
        return Operator(name, origin) if 0 < len(name) <= _LONGEST_NAME and name.isprintable() else None
