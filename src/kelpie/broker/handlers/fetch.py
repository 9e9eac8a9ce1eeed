"""Fetch: see `kelpie.broker.fetch_service`, which holds the sessions and the requests that wait."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.model.time import Instant


def handle(broker: Broker, call: Call, now: Instant) -> None:
    broker.fetching.fetch(call, now)
