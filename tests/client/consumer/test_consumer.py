"""The consumer for asyncio, apart from any connection: events at the wrong time, settings that cannot be."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kelpie.client.consumer import Consumer, ConsumerError
from kelpie.client.settings import Settings
from kelpie.consumer.effects import (
    CommitFailed,
    ConsumedRecord,
    OffsetsCommitted,
    Problem,
    ProblemKind,
    ProblemRaised,
    RecordsDelivered,
)
from kelpie.questions.offset_commit import OffsetToCommit
from kelpie.wire.records import TimestampType
from tests.consumer.world import T0, T1

RECORD = ConsumedRecord("t", 0, 7, -1, TimestampType.CREATE, None, b"value")
PROBLEM = Problem(ProblemKind.NO_OFFSET, "Nobody says where to begin.")


class Still:
    """A driver that does nothing."""

    def do(self, event: Callable[[int], Any]) -> None:
        event(0)

    async def end(self) -> None:
        """Nothing to end."""


def _consumer(*, moved: bool = False) -> Consumer:
    consumer = Consumer(Settings.of("nowhere:9092"), "g", partitions=[T1 if moved else T0])
    consumer._driver = Still()  # type: ignore[assignment]
    return consumer


def test_records_that_come_as_a_poll_ends_are_not_lost() -> None:
    """They are consumed as far as the machine knows: the next commit covers them."""

    async def play() -> None:
        consumer = _consumer()
        polling = asyncio.create_task(consumer.poll(0))
        # Behind the poll's first step, and before its time limit has been looked at.
        asyncio.get_running_loop().call_soon(consumer._on_event, RecordsDelivered((RECORD,)))
        assert await polling == [RECORD]

    asyncio.run(play())


@pytest.mark.parametrize("moved", [False, True])
def test_records_for_a_poll_that_was_cancelled_come_with_the_next(moved: bool) -> None:
    """Unless the partition is another's by then."""

    async def play() -> None:
        consumer = _consumer(moved=moved)
        polling = asyncio.create_task(consumer.poll(30))
        await asyncio.sleep(0)
        consumer._on_event(RecordsDelivered((RECORD,)))
        polling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await polling
        assert await consumer.poll(0) == ([] if moved else [RECORD])
        assert await consumer.poll(0) == []

    asyncio.run(play())


def test_problems_are_raised_by_whoever_waits_for_them() -> None:
    """poll raises what poll met, commit what became of that commit."""

    async def play() -> None:
        consumer = _consumer()
        polling = asyncio.create_task(consumer.poll(30))
        committing = asyncio.create_task(consumer.commit({T0: 3}))
        other = asyncio.create_task(consumer.commit({T0: 4}))
        await asyncio.sleep(0)
        first, second = consumer._commits
        consumer._on_event(ProblemRaised(PROBLEM))
        consumer._on_event(CommitFailed(first, PROBLEM))
        consumer._on_event(OffsetsCommitted(second, {T0: OffsetToCommit(4)}))
        for task in (polling, committing):
            with pytest.raises(ConsumerError, match="Nobody says"):
                await task
        assert await other == {T0: 4}

    asyncio.run(play())


def test_defect_of_the_machine_reaches_the_caller() -> None:
    """It must not look like a cluster that is silent."""

    async def play() -> None:
        consumer = _consumer()
        polling = asyncio.create_task(consumer.poll(30))
        await asyncio.sleep(0)
        consumer._fail(AssertionError("a mistake"))
        with pytest.raises(AssertionError, match="a mistake"):
            await polling
        with pytest.raises(AssertionError, match="a mistake"):
            await consumer.poll(0)

    asyncio.run(play())


def test_end_ends_everyone_who_waits() -> None:
    """Nobody is left hanging."""

    async def play() -> None:
        consumer = _consumer()
        polling = asyncio.create_task(consumer.poll(30))
        await asyncio.sleep(0)
        await consumer.crash()
        with pytest.raises(RuntimeError, match="closed"):
            await polling

    asyncio.run(play())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"assignors": ["fastest"]}, "no assignor 'fastest'"),
        ({"assignors": []}, "At least one assignor"),
        ({"auto_offset_reset": "smallest"}, "does not exist"),
        ({"session_timeout_ms": 0}, "must be above 0"),
        ({"heartbeat_interval_ms": 50_000}, "must be below session_timeout_ms"),
        ({"partitions": [T0]}, "one of the two"),
    ],
)
def test_settings_that_cannot_be_are_refused(options: dict[str, Any], text: str) -> None:
    """At once, with what is wrong, and not by a broker later."""
    with pytest.raises(ValueError, match=text):
        Consumer(Settings.of("nowhere:9092"), "g", ["t"], **options)


@pytest.mark.parametrize(("group", "topics"), [(None, ["t"]), ("", ["t"]), ("g", [])])
def test_topics_need_a_group_with_a_name(group: str | None, topics: list[str]) -> None:
    """And a group needs something to read."""
    with pytest.raises(ValueError, match=r"group|Give topics"):
        Consumer(Settings.of("nowhere:9092"), group, topics)
