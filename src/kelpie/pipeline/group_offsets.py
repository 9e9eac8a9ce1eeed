"""Offsets of groups, read from their coordinators and committed there, by nobody's member.

Such commits (generation −1, no member id) are what Kafka takes from consumers that assign partitions to
themselves; a group that has members refuses them. The coordinator is asked for, and remembered until it
answers that it is none, or not at all.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kelpie.client.client_errors import BadSettings, ClientError, NotAuthenticated, TlsFailed, Unsupported
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.questions.offset_commit import AskToCommit
from kelpie.questions.offset_fetch import AskCommitted, CommittedOffsets
from kelpie.questions.question import Question
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

Answer = TypeVar("Answer")
Result = TypeVar("Result")

_OLDEST = 2
"""Before, a commit told its own time; nobody has needed that since 0.9."""
_ONE_KEY = 3
"""Later versions of FindCoordinator take several keys."""
_MOST_PER_COMMIT = 5_000
_COMMIT_LIMIT_S = 10.0
"""A coordinator may wait five seconds for a follower that has just died before it says so."""

_PASSES = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
}
_OF_ONE_PARTITION = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.OFFSET_METADATA_TOO_LARGE,
}
_HAS_MEMBERS = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.FENCED_MEMBER_EPOCH,
}
_LASTING = (BadSettings, NotAuthenticated, TlsFailed, Unsupported)


class Passing(Exception):
    """It could not be done now; later it may."""


class Refused(Exception):
    """It will not be done, however often one asks."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a coordinator has of one partition."""

    offset: int
    metadata: str


class GroupOffsets:
    """One cluster. Everything here raises Passing or Refused, in words for whoever runs the query."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._nodes: Nodes | None = None
        self._opening = asyncio.Lock()
        self._coordinators: dict[str, int] = {}

    async def stored(
        self, group: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, Stored]:
        """What is committed of these partitions."""
        question = AskCommitted(group, tuple(partitions), require_stable=False)
        return await self._asked(group, question, lambda answer: _stored(group, answer))

    async def commit(
        self, group: str, offsets: Mapping[TopicPartition, int], metadata: str
    ) -> dict[TopicPartition, str]:
        """All of them; back come those that the coordinator does not take, with the reason."""
        refused: dict[TopicPartition, str] = {}
        todo = list(offsets.items())
        for start in range(0, len(todo), _MOST_PER_COMMIT):
            part = {name: (offset, None, metadata) for name, offset in todo[start : start + _MOST_PER_COMMIT]}
            question = AskToCommit(group, -1, "", None, part)
            refused |= await self._asked(group, question, lambda answer: _not_taken(group, answer), _OLDEST)
        return refused

    async def close(self) -> None:
        nodes, self._nodes = self._nodes, None
        self._coordinators.clear()
        if nodes is not None:
            await nodes.close()

    async def _asked(
        self, group: str, question: Question[Answer], read: Callable[[Answer], Result], oldest: int = 0
    ) -> Result:
        try:
            nodes = await self._opened()
            node = await self._coordinator(nodes, group)
            return read(await nodes.put(node, question, _COMMIT_LIMIT_S, oldest))
        except _LASTING as error:
            raise Refused(error.reason) from None
        except ClientError as error:
            self._coordinators.pop(group, None)
            await self._look_again()
            raise Passing(error.reason) from None
        except Passing:
            self._coordinators.pop(group, None)
            raise

    async def _opened(self) -> Nodes:
        async with self._opening:
            if self._nodes is None:
                self._nodes = await Nodes.open(self._settings)
            return self._nodes

    async def _look_again(self) -> None:
        """Brokers may have moved; if nobody knows where to, the bootstrap addresses are all there is."""
        async with self._opening:
            if self._nodes is None:
                return
            self._nodes.forget_failures()
            try:
                await self._nodes.refresh()
            except ClientError:
                await self.close()

    async def _coordinator(self, nodes: Nodes, group: str) -> int:
        if group not in self._coordinators:
            told = await _find(nodes, group)
            _check(f"group {group} has no coordinator", told.error_code)
            if told.node_id not in nodes.brokers:
                await nodes.refresh()
            self._coordinators[group] = told.node_id
        return self._coordinators[group]


async def _find(nodes: Nodes, group: str) -> FindCoordinatorResponse:
    """The answer of the first broker that gives one."""
    failure = ClientError("The cluster lists no brokers.")
    for node in list(nodes.brokers):
        try:
            version = (await nodes.versions(node)).pick(FindCoordinatorRequest, at_most=_ONE_KEY)
            response: FindCoordinatorResponse = await nodes.ask(
                node, FindCoordinatorRequest(key=group), version
            )
        except ClientError as error:
            failure = error
            continue
        return response
    raise failure


def _stored(group: str, answer: CommittedOffsets) -> dict[TopicPartition, Stored]:
    what = f"the offsets of group {group} cannot be read"
    _check(what, answer.error)
    for it in answer.partitions.values():
        if it.error not in _OF_ONE_PARTITION:
            _check(what, it.error)
    return {
        name: Stored(it.offset, it.metadata or "") for name, it in answer.partitions.items() if it.offset >= 0
    }


def _not_taken(group: str, answer: Mapping[TopicPartition, int]) -> dict[TopicPartition, str]:
    refused = {}
    for name, error in answer.items():
        if error in _OF_ONE_PARTITION:
            refused[name] = f"{describe(error)}. {info(error).meaning}"
        else:
            _check(f"group {group} does not take the commit", error)
    return refused


def _check(what: str, error: int) -> None:
    if error == ErrorCode.NONE:
        return
    if error in _PASSES:
        raise Passing(f"{what}: {describe(error)}. {info(error).meaning}")
    if error in _HAS_MEMBERS:
        raise Refused(
            f"{what}: {describe(error)}. It has members: consumers that have joined it. A query of Spark's "
            "is no member, so it needs a group of its own, or those consumers have to stop."
        )
    raise Refused(f"{what}: {describe(error)}. {info(error).meaning}")
