"""One handler per API, in a file of the API's name: `handle(broker, call, now)`."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.model.time import Instant
from kelpie.wire.apis import NAMES, module_name

Handler = Callable[[Broker, Call, Instant], None]


@cache
def find(api_key: int) -> Handler | None:
    """The handler of an API, imported when it is first needed."""
    name = NAMES.get(api_key)
    if name is None or find_spec(f"{__name__}.{module_name(name)}") is None:
        return None
    handler: Handler = import_module(f"{__name__}.{module_name(name)}").handle
    return handler


def handle(broker: Broker, call: Call, now: Instant) -> None:
    """A request reached this broker. The answer comes through the call, at once or later."""
    handler = find(call.header.api_key)
    if handler is None or call.header.api_key not in broker.persona.versions:
        call.refuse()
        return
    handler(broker, call, now)
