"""Plays a script against one cluster, and writes down what is seen.

When is a step over? A JoinGroup or SyncGroup may wait for other members, and a request may set the waiting of
others free, so that time proves nothing. What proves it is order: the real broker runs with one thread for
the network and one for requests (`REAL_CONFIG`), the lab with one loop, and each group has one queue. A
DescribeGroups of the same group that is sent later is worked on later, and answered later. Requests that
reach the broker in the same moment may still be taken in either order, so a second one is sent when the first
is answered, and a third because two answers may leave in the same moment. What has no answer then is parked.

Scripts with timers have the step `lapse`: nothing is asked until a timer has fired, and then for a while
(`hold`), so that all have fired that were set by the steps before. These steps must be quick (`AT_MOST_S`);
if the machine was too slow, the script proves nothing and is played again.

Two things run by a timer even without delay: the end of a group's first rebalance, and of one for which no
member is left, only ids that were given out. The group's state shows them.
"""

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import Any

from kelpie.model.partitioning import partition_for
from kelpie.wire.api.delete_groups import DeleteGroupsRequest
from kelpie.wire.api.describe_groups import DescribeGroupsRequest
from kelpie.wire.api.describe_transactions import DescribeTransactionsRequest
from kelpie.wire.api.leave_group import LeaveGroupRequest, MemberIdentity
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.lab.differential.cast import Cast, Part
from tests.lab.differential.connection import Connect, Connections, Lost, by_socket
from tests.lab.differential.names import Names, first_part
from tests.lab.differential.requests import TOPICS, Requests
from tests.lab.differential.script import Script, Step

MAX_SIZE = 4
"""Of groups, on both sides."""
REAL_CONFIG: dict[str, object] = {
    "num_network_threads": 1,
    "num_io_threads": 1,
    "group_coordinator_append_linger_ms": 0,
    "group_max_size": MAX_SIZE,
}
OFFSETS_PARTITIONS = 5
"""Of __consumer_offsets, on both sides."""
LIMIT_S = 30.0
SHORT_MS = 3_000
"""The timeout that scripts with timers use."""
AT_MOST_S = 0.5
"""Timers that are set by the steps between two lapses shall fire together: so long these steps may take."""
LAPSE_S = 5.0
"""No timer is left that could fire."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.1
"""Between two questions whether a timer has fired."""
NO_ANSWER = "no answer"
CLOSED = "connection closed"
_PARKING = frozenset({"join", "sync"})
_NEXT = {"join": 0, "sync": 1, "heartbeat": 2}


@dataclass(frozen=True)
class Cluster:
    address: str
    topic_ids: dict[str, bytes]
    connect: Connect = by_socket


@dataclass
class Seen:
    """What followed from one step."""

    step: int
    answers: dict[int, Any] = field(default_factory=dict)
    """By the step that asked: the answer of this step, and of earlier ones that had waited."""
    group: Any = None
    """How DescribeGroups tells of the group afterwards."""


@dataclass
class Asked:
    step: Step
    part: Part | None
    """Whose view the answer changes."""
    group: str
    answer: "asyncio.Future[Any]"


class Side:
    def __init__(self, cluster: Cluster, script: Script, prefix: str) -> None:
        self.script = script
        self.names = Names(prefix, cluster.topic_ids)
        self.cast = Cast(script.actors, prefix)
        self.requests = Requests(self.cast, self.names)
        self.leaders: dict[tuple[str, int], str] = {}
        """By group and generation: who led, by the first part of its id."""
        self.longest_s = 0.0
        """The longest time between two lapses."""
        self._connections = Connections(cluster.address, cluster.connect)
        self._asked: dict[int, Asked] = {}
        self._states: dict[str, str] = {}

    async def play(self) -> list[Seen]:
        seen = []
        try:
            began = _now()
            for number, step in enumerate(self.script.steps):
                if step["op"] == "lapse":
                    self.longest_s = max(self.longest_s, _now() - began)
                seen.append(await self._play(number, step))
                if step["op"] == "lapse":
                    began = _now()
            self.longest_s = max(self.longest_s, _now() - began)
            await self._clean_up()
        finally:
            await self._connections.close()
        return seen

    async def _play(self, number: int, step: Step) -> Seen:
        step = self._proper(step) if step["op"] == "advance" else step
        if step["op"] == "busy":
            return Seen(number)
        if step["op"] == "lapse":
            return await self._lapse(number, step)
        group = self._group(step)
        message = self.requests.make(step)
        answer = await self._connections.ask(message, step["v"], f"s{number}")
        asked = self._asked[number] = Asked(step, self._tracked(step), group, answer)
        if asked.part is not None:
            asked.part.awaits = number
        described: Any = None
        if step["op"] in _PARKING:
            for _ in range(3):
                described = await self._describe(group)
                if answer.done():
                    break
        else:
            await self._wait(answer)
        if step["op"] in ("end", "init"):
            await self._wait_for_transaction(step)
        if step["op"] in ("commit", "txn_commit"):
            await self._make_visible(group)
        if answer.done():
            described = await self._describe(group)
            if len(self._asked) > 1:
                described = await self._describe(group)
        if self._states.get(group, "Dead") in ("Dead", "Empty") or not described.members:
            described = await self._wait_while(group, "PreparingRebalance", described)
        self._states[group] = described.group_state
        return self._seen(number, described)

    def _group(self, step: Step) -> str:
        if "g" in step:
            return self.cast.group(step["g"])
        if "a" in step:
            return self.cast.parts[step["a"]].group
        return self.cast.group(step["groups"][0]) if step.get("groups") else self.cast.group(0)

    def _proper(self, step: Step) -> Step:
        """What the actor does next if it follows the protocol."""
        part = self.cast.parts[step["a"]]
        if part.awaits is not None and not step.get("impatient"):
            return {"op": "busy"}
        op = "heartbeat" if part.phase == "beat" else part.phase
        return {**step, "op": op, "v": step["vs"][_NEXT[op]]}

    def _tracked(self, step: Step) -> Part | None:
        own = (
            step.get("who", "own") in ("own", "none") and step.get("inst", "own") == "own" and "g" not in step
        )
        return self.cast.parts[step["a"]] if own and step["op"] in _NEXT else None

    # Waiting.

    async def _wait(self, answer: "asyncio.Future[Any]") -> None:
        await asyncio.wait([answer], timeout=LIMIT_S)

    async def _describe(self, group: str) -> Any:
        answer = await self._connections.ask(DescribeGroupsRequest(groups=[group]), 5, "observer")
        async with asyncio.timeout(LIMIT_S):
            (described,) = (await answer).groups
        for member in described.members:
            self.names.belongs(member.member_id, group)
        return described

    async def _make_visible(self, group: str) -> None:
        """Has something written to the group's partition: see known.py."""
        wanted = partition_for(group, OFFSETS_PARTITIONS)
        others = (f"other-{number}" for number in itertools.count())
        other = next(each for each in others if partition_for(each, OFFSETS_PARTITIONS) == wanted)
        offset = OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata="")
        topic = OffsetCommitRequestTopic(name=TOPICS["a"][0], partitions=[offset])
        message = OffsetCommitRequest(group_id=other, topics=[topic])
        await self._wait(await self._connections.ask(message, 5, "observer"))

    async def _wait_while(self, group: str, state: str, described: Any) -> Any:
        deadline = _now() + LIMIT_S
        pause_s = _FIRST_PAUSE_S
        while described.group_state == state and _now() < deadline:
            await asyncio.sleep(pause_s)  # It waits for a timer, which many questions would not hasten.
            pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
            described = await self._describe(group)
            if described.group_state != state:
                described = await self._describe(group)
        return described

    async def _wait_for_transaction(self, step: Step) -> None:
        """Markers are written after EndTxn is answered."""
        wanted = [self.requests.transactional_id(step)]
        deadline = _now() + LIMIT_S
        while _now() < deadline:
            message = DescribeTransactionsRequest(transactional_ids=wanted)
            answer = await self._connections.ask(message, 0, "observer")
            async with asyncio.timeout(LIMIT_S):
                (found,) = (await answer).transaction_states
            if not found.transaction_state.startswith("Prepare"):
                return

    async def _lapse(self, number: int, step: Step) -> Seen:
        """Nobody does anything until timers have changed the group, or would have."""
        group = self._group(step)
        before = described = await self._describe(group)
        end = _now() + LAPSE_S
        while _now() < end:
            await asyncio.sleep(0.01)
            described = await self._describe(group)
            if before is not None and _outline(described) != _outline(before):
                before, end = None, _now() + step["hold"]
        self._states[group] = described.group_state
        return self._seen(number, described)

    # Seeing.

    def _seen(self, number: int, described: Any) -> Seen:
        seen = Seen(number)
        answered = [each for each in sorted(self._asked) if self._asked[each].answer.done()]
        if (
            number in self._asked
            and number not in answered
            and self._asked[number].step["op"] not in _PARKING
        ):
            seen.answers[number] = NO_ANSWER
        for each in answered:
            asked = self._asked.pop(each)
            if asked.part is not None and asked.part.awaits == each:
                asked.part.awaits = None
            try:
                response = asked.answer.result()
            except Lost:
                seen.answers[each] = CLOSED
                continue
            self._learn(each, asked, response)
            seen.answers[each] = self._plain(asked, response)
        seen.group = self.names.plain(described)
        return seen

    def _learn(self, number: int, asked: Asked, response: Any) -> None:
        op = asked.step["op"]
        if op == "join":
            self.names.belongs(response.member_id, asked.group)
            self.names.member(response.member_id)
            if response.error_code == 0:
                self.leaders[asked.group, response.generation_id] = first_part(response.leader)
        if op == "init" and response.error_code == 0:
            self.requests.producers[asked.step["p"]] = (response.producer_id, response.producer_epoch)
        if op == "end" and response.error_code == 0 and asked.step["v"] >= 5:
            self.requests.producers[asked.step["p"]] = (response.producer_id, response.producer_epoch)
        if asked.part is not None and (asked.part.awaits is None or asked.part.awaits < number):
            asked.part.told(op, response)

    def _plain(self, asked: Asked, response: Any) -> Any:
        plain = self.names.plain(response)
        if asked.step["op"] == "fetch" and asked.step["topics"] is None:
            for group in plain["groups"] or [plain]:
                group["topics"].sort(key=lambda topic: (topic["name"], topic.get("topic_id") or ""))
                for topic in group["topics"]:
                    topic["partitions"].sort(key=lambda each: each["partition_index"])
        return plain

    async def _clean_up(self) -> None:
        """Empties the groups, so that lists stay short."""
        groups = sorted({part.group for part in self.cast.parts})
        for group in groups:
            described = await self._describe(group)
            members = [MemberIdentity(member_id=each.member_id) for each in described.members]
            leave = LeaveGroupRequest(group_id=group, members=members)
            await self._wait(await self._connections.ask(leave, 3, "observer"))
        await self._wait(await self._connections.ask(DeleteGroupsRequest(groups_names=groups), 2, "observer"))


def _now() -> float:
    """By the clock of the event loop, which may be virtual."""
    return asyncio.get_running_loop().time()


def _outline(described: Any) -> tuple[str, list[str]]:
    return described.group_state, sorted(member.member_id for member in described.members)
