"""A worker of Kafka Connect, as its group sees it: protocol type "connect", and Connect's own blobs.

It runs no connector. A worker's group only spreads connectors over workers, and commits nothing, so that is
all that brokers, and the doctor, ever see of it. Formats are those of Connect's ConnectProtocol, version 0.
"""

import struct
from threading import Event
from typing import Any

from kafka import KafkaConsumer
from kafka.coordinator.base import BaseCoordinator

_NO_OFFSET = -1
_POLL_S = 0.2
_LIMIT_MS = 30_000


class _Worker(BaseCoordinator):
    """kafka-python joins, heartbeats and leaves; here is what Connect says meanwhile."""

    url = ""

    def protocol_type(self) -> str:
        return "connect"

    def group_protocols(self) -> list[tuple[str, bytes]]:
        return [("default", struct.pack(">h", 0) + _text(self.url) + struct.pack(">q", _NO_OFFSET))]

    def _perform_assignment(self, leader_id: str, protocol: str, members: list[Any]) -> dict[str, bytes]:
        assignment = struct.pack(">hh", 0, 0) + _text(leader_id) + _text(self.url)
        assignment += struct.pack(">qi", _NO_OFFSET, 0)
        return {member.member_id: assignment for member in members}


def worker(servers: str, number: int, over: Event) -> None:
    """Is in the group until the end."""
    consumer = KafkaConsumer(bootstrap_servers=servers.split(","), client_id=f"connect-{number}")
    _Worker.url = f"http://worker-{number}:8083/"
    # There is no other way to a client of kafka-python than through a consumer.
    coordinator = _Worker(
        consumer._client,
        group_id="connect",
        session_timeout_ms=10_000,
        heartbeat_interval_ms=1000,
        api_version=consumer.config["api_version"],
    )
    try:
        while not over.wait(_POLL_S):
            coordinator.ensure_active_group(timeout_ms=_LIMIT_MS)
            coordinator.poll_heartbeat()
    finally:
        coordinator.close(timeout_ms=_LIMIT_MS)
        consumer.close()


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data
