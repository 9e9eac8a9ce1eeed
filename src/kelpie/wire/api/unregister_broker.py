"""UnregisterBroker (api key 64): forget a broker that will not come back.

v0   the only version; flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, request, response


@request(key=64, versions="0", flexible="0+")
class UnregisterBrokerRequest:
    broker_id: Int32


@response(key=64, versions="0", flexible="0+")
class UnregisterBrokerResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
