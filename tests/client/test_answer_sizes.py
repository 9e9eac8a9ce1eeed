"""Answers have a size by API: one that is longer is refused when it is announced, and not gathered."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kelpie.client import connection as connection_module
from kelpie.client.address import Address
from kelpie.client.answer_sizes import LARGEST, UNASKED, largest_answer
from kelpie.client.client_errors import TimedOut, Unreadable
from kelpie.client.connection import Connection
from kelpie.client.settings import Settings
from kelpie.wire.api.api_versions import ApiVersionsRequest
from kelpie.wire.api.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kelpie.wire.api.metadata import MetadataRequest
from kelpie.wire.apis import NAMES
from kelpie.wire.framing import decode_response, encode_response

ADDRESS = Address("broker", 9092)
LIST_GROUPS = 16


class _Wire(asyncio.Transport):
    """Takes what is written, and sends nothing."""

    aborted = False

    def write(self, data: Any) -> None:
        """Nobody reads it."""

    def abort(self) -> None:
        self.aborted = True


def _connected(test: Callable[[Connection, _Wire], Awaitable[None]]) -> None:
    async def run() -> None:
        connection, wire = Connection(ADDRESS, Settings((ADDRESS,), request_timeout_s=1.0)), _Wire()
        connection.connection_made(wire)
        async with asyncio.timeout(30.0):
            await test(connection, wire)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("request_", "version", "limit"),
    [(ApiVersionsRequest(), 0, 256 * 1024), (MetadataRequest(topics=[]), 1, 128 * 1024 * 1024)],
    ids=["ApiVersions", "Metadata"],
)
def test_an_answer_that_is_too_long_is_refused_when_it_is_announced(
    request_: Any, version: int, limit: int
) -> None:
    """Eight bytes say how long it is and what it answers."""

    async def test(connection: Connection, wire: _Wire) -> None:
        asking = asyncio.create_task(connection.ask(request_, version))
        await asyncio.sleep(0)
        connection.data_received(limit.to_bytes(4) + (1).to_bytes(4))
        assert not wire.aborted
        asking.cancel()
        again = asyncio.create_task(connection.ask(request_, version))
        await asyncio.sleep(0)
        connection._frames._pending.clear()
        connection.data_received((limit + 1).to_bytes(4) + (2).to_bytes(4))
        with pytest.raises(Unreadable, match=f"with {limit + 1} bytes; Kelpie reads up to {limit}"):
            await again
        assert wire.aborted

    _connected(test)


def test_a_long_frame_that_answers_nothing_is_refused() -> None:
    """Otherwise a wrong correlation id would be a way around every limit."""

    async def test(connection: Connection, wire: _Wire) -> None:
        asking = asyncio.create_task(connection.ask(ListGroupsRequest(), 0))
        await asyncio.sleep(0)
        connection.data_received(UNASKED.to_bytes(4) + (77).to_bytes(4))
        assert not wire.aborted
        connection._frames._pending.clear()
        connection.data_received((UNASKED + 1).to_bytes(4) + (77).to_bytes(4))
        with pytest.raises(Unreadable, match="answer nothing Kelpie asked"):
            await asking
        assert wire.aborted

    _connected(test)


def test_a_late_answer_may_be_as_long_as_one_in_time() -> None:
    """A request whose time is up is forgotten; its answer is dropped, and the connection goes on."""

    async def test(connection: Connection, wire: _Wire) -> None:
        with pytest.raises(TimedOut):
            await connection.ask(ListGroupsRequest(), 0, 0.01)
        connection.data_received((UNASKED * 2).to_bytes(4) + (1).to_bytes(4) + bytes(UNASKED * 2 - 4))
        assert not wire.aborted
        assert connection.is_open

    _connected(test)


@pytest.mark.parametrize(("groups", "beside"), [(10, False), (10_000, True)])
def test_a_long_answer_is_decoded_beside_the_loop(
    groups: int, beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop keeps the time limits of all other questions meanwhile."""
    threads: list[threading.Thread] = []

    def noted(*given: Any) -> Any:
        threads.append(threading.current_thread())
        return decode_response(*given)

    monkeypatch.setattr(connection_module, "decode_response", noted)
    rows = [ListedGroup(group_id=f"group-{at}", protocol_type="consumer") for at in range(groups)]
    frame = encode_response(LIST_GROUPS, 0, 1, ListGroupsResponse(error_code=0, groups=rows))

    async def test(connection: Connection, _: _Wire) -> None:
        asking = asyncio.create_task(connection.ask(ListGroupsRequest(), 0))
        await asyncio.sleep(0)
        connection.data_received(frame)
        assert len((await asking).groups) == groups

    _connected(test)
    assert [thread is not threading.main_thread() for thread in threads] == [beside]


def test_every_api_has_a_limit() -> None:
    """None of them above the largest that any answer may have."""
    assert all(0 < largest_answer(key) <= LARGEST for key in NAMES)
