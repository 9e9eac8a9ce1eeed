"""Many members of one group over raw connections, with nothing of a client library in between."""

import asyncio
import struct
import time
from typing import Any

from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kelpie.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kelpie.wire.consumer_protocol import Assignment, Subscription, encode
from kelpie.wire.framing import RequestHeader, decode_response, encode_request
from kelpie.wire.structs import TopicPartitions

JOIN, SYNC, FIND = 11, 14, 10
LIMIT_S = 60


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, host: str, port: int) -> "Connection":
        return cls(*await asyncio.wait_for(asyncio.open_connection(host, port), LIMIT_S))

    async def ask(self, api_key: int, version: int, message: Any) -> Any:
        self._writer.write(encode_request(RequestHeader(api_key, version, 1, "bench"), message))
        size = struct.unpack(">i", await asyncio.wait_for(self._reader.readexactly(4), LIMIT_S))[0]
        frame = await asyncio.wait_for(self._reader.readexactly(size), LIMIT_S)
        return decode_response(api_key, version, frame)[1]

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


class Group:
    """One group, all of whose members live here and rebalance on command."""

    def __init__(self, name: str, connections: list[Connection]) -> None:
        self._name = name
        self._connections = connections
        self._ids = [""] * len(connections)
        self._round = 0

    @classmethod
    async def of(cls, host: str, port: int, members: int, name: str) -> "Group":
        first = await Connection.to(host, port)
        for _ in range(200):
            found = await first.ask(FIND, 4, FindCoordinatorRequest(coordinator_keys=[name]))
            if found.coordinators[0].error_code == 0:
                break
            await asyncio.sleep(0.05)
        await first.close()
        group = cls(name, [await Connection.to(host, port) for _ in range(members)])
        answers = await asyncio.gather(*(group._join(index) for index in range(members)))
        group._ids = [answer.member_id for answer in answers]
        return group

    async def rebalance(self) -> float:
        """All members join anew and get assignments: seconds from the first request to the last answer."""
        self._round += 1
        start = time.perf_counter()
        answers = await asyncio.gather(*(self._join(index) for index in range(len(self._ids))))
        wrong = {answer.error_code for answer in answers} - {0}
        if wrong or len({answer.generation_id for answer in answers}) != 1:
            raise AssertionError(f"the group did not come together: errors {wrong}")
        await asyncio.gather(*(self._sync(index, answer) for index, answer in enumerate(answers)))
        return time.perf_counter() - start

    async def close(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self._connections))

    async def _join(self, index: int) -> JoinGroupResponse:
        subscription = Subscription(topics=["orders"], user_data=str(self._round).encode())
        request = JoinGroupRequest(
            group_id=self._name,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=self._ids[index],
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=encode(subscription, 1))],
        )
        answer: JoinGroupResponse = await self._connections[index].ask(JOIN, 7, request)
        return answer

    async def _sync(self, index: int, joined: JoinGroupResponse) -> None:
        assignments = [
            SyncGroupRequestAssignment(
                member_id=member.member_id,
                assignment=encode(
                    Assignment(assigned_partitions=[TopicPartitions(topic="orders", partitions=[number])]), 1
                ),
            )
            for number, member in enumerate(joined.members)
        ]
        request = SyncGroupRequest(
            group_id=self._name,
            generation_id=joined.generation_id,
            member_id=self._ids[index],
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        answer = await self._connections[index].ask(SYNC, 5, request)
        if answer.error_code:
            raise AssertionError(f"SyncGroup answered {answer.error_code}")
