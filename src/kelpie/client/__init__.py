"""Connections to real clusters, from Kafka 0.9 to 4.x; the admin client; the survey of a whole cluster.

From the outside in:

- `survey`: the state of a whole cluster, also of one that is half dead, with what could not be asked.
- `admin`: one question or one change at a time. `Admin` and `SyncAdmin` are for scripts: docs/admin.md.
- `nodes.Nodes`: a cluster as a client sees it: bootstrap, one connection to each broker.
- `connection.Connection`: one connection: many requests under way, each with its time limit.
- `opening`: how a connection comes about: TCP (`dialling`), TLS (`tls`), versions (`negotiation`,
  `versions`), SASL (`sasl`). `memory`: what one connection finds out for the next.
- `settings`, `address`, `security`: what must be known before. `properties`: read from a file as Kafka's own
  tools take it with --command-config (`java_properties`, `login`, `stores`: parts of it).
- `client_errors`: everything that can go wrong.

Nothing here changes a cluster: no topic is created, no group joined, nothing committed, unless the caller
asks for just that.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kelpie.client.admin.admin import Admin
    from kelpie.client.admin.synchronous import SyncAdmin
    from kelpie.client.client_errors import ClientError
    from kelpie.client.properties import settings_of
    from kelpie.client.settings import Settings

__all__ = ["Admin", "ClientError", "Settings", "SyncAdmin", "settings_of"]

_HOMES = {
    "Admin": "admin.admin",
    "ClientError": "client_errors",
    "Settings": "settings",
    "SyncAdmin": "admin.synchronous",
    "settings_of": "properties",
}


def __getattr__(name: str) -> Any:
    """Imports a name when it is first used: the command line must start quickly."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
