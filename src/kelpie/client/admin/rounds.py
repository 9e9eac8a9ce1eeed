"""How the admin client asks: rounds of questions, each item of its coordinator or leader, with patience."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import TypeVar

from kelpie.client.admin.asking import Asking, Clock, together
from kelpie.client.admin.coordinators import GroupCoordinators
from kelpie.client.admin.rows import Rows
from kelpie.client.admin.topics import ask_metadata, ask_offsets_topic, best_views, by_leader, views_of
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, CoordinatorAnswer, PartitionView
from kelpie.questions.question import by_topic

Item = TypeVar("Item")
Row = TypeVar("Row")
Attempt = Callable[[Asking, Sequence[Item]], Awaitable[Iterable[Row]]]
AskCoordinator = Callable[[Asking, int, Sequence[str]], Awaitable[None]]

PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
"""Errors that pass by themselves: something is loading, or has just moved."""
_PAUSE_S = 0.1
_REMEMBER_FAILURES_S = 5.0
"""A broker that could not be reached is not tried again before that."""


class Rounds:
    """The rounds of questions of one admin client. `owns_nodes`: the connections are closed with it."""

    def __init__(self, nodes: Nodes, patience_s: float, clock: Clock) -> None:
        self.nodes = nodes
        self.owns_nodes = False
        self.clock = clock
        self._patience_s = patience_s
        self._offsets_topic: list[PartitionView] = []
        """The views of the offsets topic, kept until a coordinator does not answer as such."""
        self._failures_since: float | None = None
        self._is_stale = False
        """Whether the list of brokers, too, may have changed."""

    async def begin(self) -> Asking:
        """A new round of questions, with all brokers that can be reached."""
        if self._is_stale:
            self._is_stale = False
            await self._refresh()
        now = asyncio.get_running_loop().time()
        if self._failures_since is None or now - self._failures_since > _REMEMBER_FAILURES_S:
            self._failures_since = now
            self.nodes.forget_failures()
        asking = Asking(self.nodes, self.clock)
        await asking.meet()
        return asking

    async def patiently(
        self, items: Iterable[Item], attempt: Attempt[Item, Row], key: Callable[[Row], str]
    ) -> Rows[Row]:
        """Asks for all items; those with a passing error again, within the patience of this client."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        left = {str(item): item for item in items}
        answer: Rows[Row] = Rows()
        while left:
            asking = await self.begin()
            rows = [row for row in await attempt(asking, list(left.values())) if key(row) in left]
            refused = [row for row in asking.seen.answers if row.error and row.group in left]
            unasked = [row for row in asking.seen.unasked if row.name in left]
            passing = _passing(asking, rows, key, refused)
            if passing:
                # Coordinators may have moved, and so may brokers.
                self._offsets_topic, self._is_stale = [], True
            if loop.time() + _PAUSE_S > deadline:
                passing = set()
            answer.rows += [row for row in rows if key(row) not in passing]
            answer.refused += [row for row in refused if row.group not in passing]
            answer.unasked += [row for row in unasked if row.name not in passing]
            left = {name: item for name, item in left.items() if name in passing}
            if left:
                await asyncio.sleep(_PAUSE_S)
        return answer

    async def of_groups(
        self,
        groups: Iterable[str],
        ask: AskCoordinator,
        rows: Callable[[Asking], Iterable[Row]],
        *,
        creates: bool = False,
        may_be_missing: bool = False,
    ) -> Rows[Row]:
        """Asks the coordinator of each group, patiently. `rows` are the rows that a round has added.

        `creates`: an offsets topic that is missing is created. `may_be_missing`: without an offsets topic,
        the answer is that there is nothing; else each group becomes an Unasked row.
        """

        async def attempt(asking: Asking, names: Sequence[str]) -> Iterable[Row]:
            await self._ask_coordinators(asking, names, ask, creates, may_be_missing)
            return rows(asking)

        return await self.patiently(groups, attempt, attrgetter("group"))

    async def _refresh(self) -> None:
        """Brokers may have moved. If none of them answers, the bootstrap servers are asked anew."""
        self.nodes.forget_failures()
        try:
            await self.nodes.refresh()
        except ClientError:
            if self.owns_nodes:
                try:
                    nodes = await Nodes.open(self.nodes.settings, memory=self.nodes.memory)
                except ClientError:
                    return  # Nothing has changed: the next attempt says which brokers do not answer.
                await self.nodes.close()
                self.nodes = nodes

    async def _ask_coordinators(
        self, asking: Asking, groups: Sequence[str], ask: AskCoordinator, creates: bool, may_be_missing: bool
    ) -> None:
        views = self._offsets_topic or await self._ask_offsets_topic(asking)
        coordinators = GroupCoordinators(asking, views, {})
        if coordinators.is_missing and may_be_missing:
            return
        with asking.noting("group", groups):
            if not coordinators.count and (creates or not coordinators.is_missing):
                await coordinators.find(groups)
            plan = coordinators.by_node(groups)
            await together(*(ask(asking, node, names) for node, names in plan.items()))

    async def _ask_offsets_topic(self, asking: Asking) -> list[PartitionView]:
        """What the brokers say of the offsets topic. It is kept if there is such a topic."""

        async def ask(node: int) -> None:
            with suppress(ClientError):  # The broker is silent then; other brokers have views, too.
                await ask_offsets_topic(asking, node)

        await together(*map(ask, asking.reached))
        views = [view for view in asking.seen.partitions if view.topic == OFFSETS_TOPIC]
        if any(view.partition >= 0 for view in views):
            self._offsets_topic = views
        return views

    async def leaders(
        self, asking: Asking, partitions: Sequence[TopicPartition]
    ) -> dict[int, list[TopicPartition]]:
        """Partitions by leader. A partition that is unknown or has no leader becomes an Unasked row."""
        views: list[PartitionView] = []
        for node in asking.reached:
            try:
                response, at = await ask_metadata(asking, node, list(by_topic(partitions)))
            except ClientError:
                continue  # The next broker knows the leaders as well.
            for topic in response.topics:
                views += views_of(topic, node, at, asking.source(node))
            break
        best = best_views(views)
        for name in partitions:
            if name not in best:
                asking.unasked("partition", [str(name)], f"No broker knows {name}.")
        return by_leader(asking, best, partitions)


def _passing(
    asking: Asking, rows: Sequence[Row], key: Callable[[Row], str], refused: Sequence[CoordinatorAnswer]
) -> set[str]:
    """The items whose every failure may pass."""
    errors = [(key(row), getattr(row, "error", 0)) for row in rows]
    errors += [(row.group, row.error) for row in refused]
    passing = {name for name, error in errors if error in PASSING}
    passing |= {row.name for row in asking.seen.unasked} - asking.lasting
    return passing - {name for name, error in errors if error and error not in PASSING}
