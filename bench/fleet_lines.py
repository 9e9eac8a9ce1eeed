"""What consumers write into their logs when something befalls them: Java's of Kafka 4, and librdkafka's."""

from collections.abc import Iterable
from datetime import UTC, datetime

from bench.fleet_disks import Position, coordinator_of
from bench.fleet_groups import Line

POLL_TIMEOUT_REASON = "consumer poll timeout has expired."
POLL_TIMEOUT = (
    f"{POLL_TIMEOUT_REASON} This means the time between subsequent calls to poll() was longer than the "
    "configured max.poll.interval.ms, which typically implies that the poll loop is spending too much time "
    "processing messages. You can address this either by increasing max.poll.interval.ms or by reducing the "
    "maximum size of batches returned in poll() with max.poll.records."
)
GAVE_AWAY = (
    "Giving away all assigned partitions as lost since generation/memberID has been reset,indicating that "
    "consumer is in old state or no longer part of the group"
)
JOINING = "(Re-)joining group"
_JAVA = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
_LEVELS_OF_LIBRDKAFKA = {"MAXPOLL": 4}


def leaving(group: str, member_id: str, reason: str) -> str:
    node = coordinator_of(group)
    coordinator = f"10.0.1.{node}:9092 (id: {2**31 - 1 - node} rack: null isFenced: false)"
    return f"Member {member_id} sending LeaveGroup request to coordinator {coordinator} due to {reason}"


def unknown_member(generation: int, member_id: str) -> str:
    return (
        f"Attempt to heartbeat with Generation{{generationId={generation}, memberId='{member_id}', "
        "protocol='range'} and group instance id Optional.empty failed due to UNKNOWN_MEMBER_ID, resetting "
        "generation"
    )


def unstable_offsets(positions: Iterable[Position]) -> str:
    partitions = ", ".join(f"{topic}-{partition}" for topic, partition in positions)
    return (
        "The following partitions still have unstable offsets which are not cleared on the broker side: "
        f"[{partitions}], this could be either transactional offsets waiting for completion, or normal "
        "offsets waiting for replication after appending to local log"
    )


def max_poll(limit_ms: int, over_ms: int) -> str:
    return (
        f"Application maximum poll interval ({limit_ms}ms) exceeded by {over_ms}ms (adjust "
        "max.poll.interval.ms for long-running message processing): leaving group"
    )


def line_of(line: Line, group: str) -> str:
    """As it stands in the file: librdkafka's have a tag where Java's have a level."""
    level = _LEVELS_OF_LIBRDKAFKA.get(line.level)
    if level is not None:
        at = f"{line.at // 1000}.{line.at % 1000:03}"
        return f"%{level}|{at}|{line.level}|{line.member}#consumer-1| [thrd:main]: {line.text}"
    start = f"[Consumer clientId={line.member}, groupId={group}] "
    return f"[{stamp(line.at)}] {line.level} {start}{line.text} ({_JAVA})"


def stamp(at: int, form: str = "%Y-%m-%d %H:%M:%S,") -> str:
    """With the milliseconds behind it."""
    return datetime.fromtimestamp(at // 1000, UTC).strftime(form) + f"{at % 1000:03}"
