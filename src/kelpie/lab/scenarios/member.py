"""A consumer of a group, as an actor: it joins, syncs, sends heartbeats, commits and leaves by hand.

It does what the Java client does and says so in its words (java_log.py), but it reads nothing: its position
in each partition is what the scenario says. What can go wrong with a consumer can be had by its switches:

    member.polls = False      the application is busy: heartbeats go on, but nobody calls poll()
    member.beats = False      the process hangs, as in a long collection of garbage: nothing is sent
    await member.close()      it leaves, as it should
    await member.vanish()     it dies without a word
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from kelpie.assignors import ASSIGNORS, assignment, member_of, subscription
from kelpie.errors import ErrorCode
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.client import RawClient
from kelpie.lab.scenarios.java_log import FATAL, KICKED_OUT, POLL_TIMEOUT, JavaLog, node
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.heartbeat import HeartbeatRequest
from kelpie.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kelpie.wire.api.leave_group import LeaveGroupRequest, MemberIdentity
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kelpie.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kelpie.wire.consumer_protocol import partitions_in

CLOSED = "the consumer is being closed"
_POLL_TIMEOUT_REASON = "consumer poll timeout has expired."
_RETRY_S = 0.05

_VERSIONS = {
    # JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit
    "0.9": (0, 0, 0, 0, 2),
    "2.8": (7, 5, 4, 4, 8),
    "3.9": (9, 5, 4, 5, 9),
    "4.3": (9, 5, 4, 5, 9),
}


class Member:
    def __init__(
        self,
        stage: Stage,
        cluster: Cluster,
        group: str,
        name: str,
        topics: Sequence[str],
        *,
        session_ms: int = 1_000,
        poll_ms: int = 3_000,
        beat_ms: int | None = None,
        instance: str | None = None,
        assignors: Sequence[str] = ("range",),
        protocol_type: str = "consumer",
        position: int = 0,
        log_name: str = "",
    ) -> None:
        self.group, self.name, self.topics = group, name, tuple(topics)
        self.session_ms, self.poll_ms = session_ms, poll_ms
        self.beat_ms = session_ms // 5 if beat_ms is None else beat_ms
        self.instance, self.assignors, self.protocol_type = instance, tuple(assignors), protocol_type
        self.position = position
        self.polls = True
        self.beats = True
        self.id = ""
        self.generation = -1
        self.assigned: tuple[TopicPartition, ...] = ()
        self.joined = asyncio.Event()
        """Set while it is in a generation and has its assignment."""
        self.refused: ErrorCode | None = None
        """Why it has given up for good."""
        self._stage, self._cluster = stage, cluster
        self._log = JavaLog(stage.logs, log_name or name, group, instance)
        self._client: RawClient | None = None
        self._where = ""
        self._versions = _VERSIONS[stage.persona]
        self._protocol = ""
        self._polled_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        stage.at_end(self._hang_up)

    # What a scenario does with it.

    def start(self) -> None:
        self._task = self._stage.actor(self._live())

    async def until_joined(self) -> None:
        await asyncio.wait_for(self.joined.wait(), 15)

    async def close(self, reason: str = CLOSED) -> None:
        """It leaves, and is gone."""
        await self._end()
        await self._hang_up()  # An answer may still be on its way on the old connection.
        if self.id and self.refused is None:
            await self._leave(reason)
        await self._hang_up()

    async def vanish(self) -> None:
        """The process dies: no word to anybody."""
        await self._end()
        await self._hang_up()

    async def commit(self, offset: int | None = None) -> ErrorCode:
        """What became of it, of the first partition."""
        self.position = self.position if offset is None else offset
        partitions: dict[str, list[OffsetCommitRequestPartition]] = {}
        for name in self.assigned:
            row = OffsetCommitRequestPartition(
                partition_index=name.partition,
                committed_offset=self.position,
                committed_leader_epoch=0,
                committed_metadata="",
            )
            partitions.setdefault(name.topic, []).append(row)
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.id,
            group_instance_id=self.instance,
            topics=[
                OffsetCommitRequestTopic(name=topic, partitions=rows) for topic, rows in partitions.items()
            ],
        )
        if not partitions:
            return ErrorCode.NONE
        answer = await self._ask(request, self._versions[4])
        code = ErrorCode(answer.topics[0].partitions[0].error_code)
        if code is not ErrorCode.NONE:
            self._say_commit_failed(code)
        return code

    # Its life.

    async def _live(self) -> None:
        self._polled_at = _now()
        while self.refused is None:
            try:
                if not self.joined.is_set():
                    if self.polls and self.beats:
                        await self._join()
                    else:
                        await asyncio.sleep(_RETRY_S)
                    continue
                await asyncio.sleep(self.beat_ms / 1000)
                if self.beats:
                    await self._beat()
            except OSError:
                self.joined.clear()
                await self._hang_up()
                await asyncio.sleep(_RETRY_S)

    async def _join(self) -> None:
        self._log.write("(Re-)joining group")
        reason = None
        answer = await self._ask(self._join_request(reason), self._versions[0])
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
            reason = f"need to re-join with the given member-id: {self.id}"
            self._log.write(f"Request joining group due to: {reason}")
            self._log.write("(Re-)joining group")
            answer = await self._ask(self._join_request(reason), self._versions[0])
            code = ErrorCode(answer.error_code)
        if code is not ErrorCode.NONE:
            await self._not_joined(code)
            return
        self.id, self.generation, self._protocol = (
            answer.member_id,
            answer.generation_id,
            answer.protocol_name,
        )
        self._polled_at = _now()
        self._log.write(f"Successfully joined group with generation {self._generation}")
        synced = await self._ask(await self._sync_request(answer), self._versions[1])
        if synced.error_code != ErrorCode.NONE:
            return
        self._log.write(f"Successfully synced group in generation {self._generation}")
        self.assigned = tuple(partitions_in(synced.assignment))
        listed = ", ".join(map(str, self.assigned))
        self._log.write(f"Adding newly assigned partitions: {listed}")
        self.joined.set()

    async def _not_joined(self, code: ErrorCode) -> None:
        text = FATAL.get(code)
        if text is not None:
            self._log.write(f"JoinGroup failed due to fatal error: {text}", "ERROR")
            self.refused = code
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            self._log.write(
                f"JoinGroup failed: The group instance id {self._option} has been fenced by another "
                f"instance. Sent generation was {self._generation}",
                "ERROR",
            )
            self.refused = code
        else:
            if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
                self._forget()
            await asyncio.sleep(_RETRY_S)

    async def _beat(self) -> None:
        if self.polls:
            self._polled_at = _now()
        elif (_now() - self._polled_at) * 1000 > self.poll_ms:
            self._log.write(POLL_TIMEOUT, "WARN")
            await self._leave(_POLL_TIMEOUT_REASON)
            return
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance,
        )
        answer = await self._ask(request, self._versions[2])
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.REBALANCE_IN_PROGRESS and self.polls:
            self._log.write("Request joining group due to: group is already rebalancing")
            listed = ", ".join(map(str, self.assigned))
            self._log.write(f"Revoke previously assigned partitions [{listed}]")
            self.joined.clear()
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._log.write(
                f"Attempt to heartbeat with {self._generation} and group instance id {self._option} failed "
                f"due to {code.name}, resetting generation"
            )
            self._log.write(
                f"Resetting generation and member id due to: encountered {code.name} from HEARTBEAT response"
            )
            self._log.write(f"Request joining group due to: encountered {code.name} from HEARTBEAT response")
            self._forget()
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            self._log.write(
                f"Caught fenced group.instance.id {self._option} error in heartbeat thread", "ERROR"
            )
            self.joined.clear()
            self.refused = code

    async def _leave(self, reason: str) -> None:
        if self.instance is None:
            self._log.write(
                f"Member {self.id} sending LeaveGroup request to coordinator {self._where} due to {reason}"
            )
            await self._ask(self._leave_request(reason), self._versions[3])
            why = "consumer pro-actively leaving the group"
            self._log.write(f"Resetting generation and member id due to: {why}")
            self._log.write(f"Request joining group due to: {why}")
        self._forget()

    def _forget(self) -> None:
        self.joined.clear()
        self.id, self.generation = "", -1

    def _say_commit_failed(self, code: ErrorCode) -> None:
        offsets = ", ".join(
            f"{name}=OffsetAndMetadata{{offset={self.position}, leaderEpoch=null, metadata=''}}"
            for name in self.assigned
        )
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            text = {
                ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
                ErrorCode.ILLEGAL_GENERATION: "Specified group generation id is not valid.",
            }[code]
            self._log.write(f"OffsetCommit failed with {self._generation}: {text}")
            self._log.write(f"Asynchronous auto-commit of offsets {{{offsets}}} failed: {KICKED_OUT}", "WARN")
        else:
            self._log.write(f"Asynchronous auto-commit of offsets {{{offsets}}} failed: {code.name}", "WARN")

    @property
    def _generation(self) -> str:
        return (
            f"Generation{{generationId={self.generation}, memberId='{self.id}', protocol='{self._protocol}'}}"
        )

    @property
    def _option(self) -> str:
        """Its instance id, as Java prints it."""
        return f"Optional[{self.instance}]" if self.instance else "Optional.empty"

    # Requests.

    def _join_request(self, reason: str | None) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.poll_ms if self._versions[0] else -1,
            member_id=self.id,
            group_instance_id=self.instance,
            protocol_type=self.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=subscription(name, self.topics, (), -1))
                for name in self.assignors
            ],
            reason=reason if self._versions[0] >= 8 else None,
        )

    async def _sync_request(self, joined: JoinGroupResponse) -> SyncGroupRequest:
        given: list[SyncGroupRequestAssignment] = []
        if joined.leader == self.id and not joined.skip_assignment:
            members = [
                member_of(self._protocol, each.member_id, each.group_instance_id, each.metadata)
                for each in joined.members
            ]
            topics = sorted({topic for member in members for topic in member.topics})
            plan = ASSIGNORS[self._protocol].assign(members, await self._counts(topics))
            given = [
                SyncGroupRequestAssignment(member_id=member, assignment=assignment(partitions))
                for member, partitions in plan.items()
            ]
            self._log.write(f"Finished assignment for group at generation {self.generation}: {_told(plan)}")
        named = self._versions[1] >= 5
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance,
            protocol_type=self.protocol_type if named else None,
            protocol_name=self._protocol if named else None,
            assignments=given,
        )

    def _leave_request(self, reason: str) -> LeaveGroupRequest:
        version = self._versions[3]
        if version < 3:
            return LeaveGroupRequest(group_id=self.group, member_id=self.id)
        leaving = MemberIdentity(member_id=self.id, reason=reason if version >= 5 else None)
        return LeaveGroupRequest(group_id=self.group, members=[leaving])

    async def _counts(self, topics: Sequence[str]) -> dict[str, int]:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic) for topic in topics])
        answer = await self._ask(asked, 0)
        return {topic.name: len(topic.partitions) for topic in answer.topics if not topic.error_code}

    async def _ask(self, request: Any, version: int) -> Any:
        """One after the other: a commit waits while a join does."""
        async with self._turn:
            if self._client is None:
                self._client = await self._find()
            return await self._client.ask(request, version)

    async def _find(self) -> RawClient:
        """A connection to the coordinator."""

        async def look() -> Any:
            for address in self._cluster.bootstrap_servers.split(","):
                try:
                    async with RawClient(self.name, address) as client:
                        return await client.ask(FindCoordinatorRequest(key=self.group), 0)
                except OSError:
                    continue
            return None

        found = await self._stage.until(look, lambda answer: answer is not None and answer.error_code == 0)
        if found is None or found.error_code:
            raise ConnectionError(f"{self.group} has no coordinator")
        self._where = node(found.host, found.port, found.node_id)
        self._log.write(f"Discovered group coordinator {self._where}")
        return RawClient(self.name, f"{found.host}:{found.port}")

    async def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self.joined.clear()

    async def _hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _told(plan: dict[str, list[TopicPartition]]) -> str:
    each = (f"{member}=Assignment(partitions=[{', '.join(map(str, own))}])" for member, own in plan.items())
    return f"{{{', '.join(each)}}}"


def _now() -> float:
    return asyncio.get_running_loop().time()
