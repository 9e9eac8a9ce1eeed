"""Fetch: see `kelpie.broker.fetching`, which holds the sessions and the requests that wait."""

from typing import TYPE_CHECKING

from kelpie.broker.call import Call
from kelpie.model.time import Instant

if TYPE_CHECKING:
    from kelpie.broker.broker import Broker


def handle(broker: "Broker", call: Call, now: Instant) -> None:
    broker.fetching.fetch(call, now)
