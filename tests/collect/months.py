"""Snapshots of some weeks, made up: a group lost its coordinator, another one was deleted, leaders moved."""

from pathlib import Path

from kelpie.errors import ErrorCode
from kelpie.evidence.snapshot_files import Header, pack
from kelpie.observations import (
    OFFSETS_TOPIC,
    BrokerView,
    Committed,
    CoordinatorAnswer,
    GroupState,
    Listing,
    LogEnds,
    Observations,
    PartitionView,
    Setting,
    Unasked,
)

HOUR = 3_600_000
BEGAN = 1_794_000_000_000
LAST = 20 * 24
"""The number of the last hour."""
LOST, DELETED, FINE = "lost", "deleted", "fine"


def write(folder: Path, hours: int = LAST) -> None:
    """A snapshot every hour; those of the last day every minute; in the end nobody answers."""
    folder.mkdir()
    moments = [number * HOUR for number in range(0, hours, 6)]
    moments += [(hours - 1) * HOUR + minute * 60_000 for minute in range(60)]
    for after in moments:
        _write(folder, after)
    nobody = Observations(unasked=[Unasked("broker", "h:1", "It refused.", BEGAN + hours * HOUR)])
    header = Header("c", BEGAN + hours * HOUR, BEGAN + hours * HOUR, "h:1", unasked=1)
    _put(folder, header, nobody)


def _write(folder: Path, after: int) -> None:
    at, hour = BEGAN + after, after // HOUR
    is_lost = hour > 24
    groups = [FINE, *([] if is_lost else [LOST]), *([] if hour > 48 else [DELETED])]
    found = Observations(
        brokers=[
            BrokerView(1, "h", 1, alive=True, at=at, source="broker 1"),
            BrokerView(2, "h", 2, alive=not is_lost, at=at),
        ],
        partitions=[
            PartitionView(
                OFFSETS_TOPIC, number, _leader(number, hour), (1 + number, 2), (1,), told_by=node, at=at
            )
            for number in range(2)
            for node in ((1,) if is_lost else (1, 2))
        ],
        listings=[Listing(1, tuple(groups), at=at, source="broker 1")],
        answers=[
            CoordinatorAnswer(it, "OffsetFetch", ErrorCode.NONE, 1, at=at, source="broker 1") for it in groups
        ],
        states=[GroupState(it, "Empty", coordinator=1, at=at, source="broker 1") for it in groups],
        committed=[Committed(it, "orders", 0, hour, at=at, source="broker 1") for it in groups],
        ends=[LogEnds("orders", 0, 0, hour + 5, hour + 5, at=at, source="broker 1")],
        settings=[Setting("topic orders", "retention.ms", str(hour), "broker 1")] if hour in (0, 60) else [],
        unasked=[Unasked("group", LOST, "Its coordinator is nobody.", at)] if is_lost else [],
        known_groups={LOST: "an earlier survey"} if is_lost else {},
    )
    _put(folder, Header("c", at - 10, at, "h:1", answered=1, has_settings=bool(found.settings)), found)


def _leader(partition: int, hour: int) -> int:
    return -1 if partition == 1 and hour > 24 else 1 + (hour // 100) % 2


def _put(folder: Path, header: Header, found: Observations) -> None:
    (folder / f"survey-c-{header.ended:015}.jsonl.gz").write_bytes(pack(header, found))
