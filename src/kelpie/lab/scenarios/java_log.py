"""The log of an actor that plays a Java consumer, in the words and the layout of Kafka's own client."""

from datetime import UTC, datetime
from pathlib import Path

from kelpie.errors import ErrorCode

_LOGGER = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"

POLL_TIMEOUT = (
    "consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer "
    "than the configured max.poll.interval.ms, which typically implies that the poll loop is spending too "
    "much time processing messages. You can address this either by increasing max.poll.interval.ms or by "
    "reducing the maximum size of batches returned in poll() with max.poll.records."
)
KICKED_OUT = (
    "Offset commit cannot be completed since the consumer is not part of an active group for auto partition "
    "assignment; it is likely that the consumer was kicked out of the group."
)
FATAL = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "The group member's supported protocols are incompatible with "
    "those of existing members or first group member tried to join with empty protocol type or empty "
    "protocol list.",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "The group has reached its maximum size.",
}
"""Errors of JoinGroup after which a consumer gives up."""


class JavaLog:
    """One file a client, in the folder of a stage's logs."""

    def __init__(self, folder: Path, client_id: str, group: str, instance: str | None = None) -> None:
        self.path = folder / f"{client_id}.log"
        named = f"instanceId={instance}, " if instance else ""
        self._start = f"[Consumer {named}clientId={client_id}, groupId={group}] "

    def write(self, text: str, level: str = "INFO") -> None:
        now = datetime.now(UTC)
        at = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03}"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"[{at}] {level} {self._start}{text} ({_LOGGER})\n")


def node(host: str, port: int, node_id: int) -> str:
    """A coordinator, as the client names it: its id is turned, so that it gets a connection of its own."""
    return f"{host}:{port} (id: {2**31 - 1 - node_id} rack: null isFenced: false)"
