"""The admin client: one method for each question to a cluster, and for each change.

    async with await Admin.open("kafka-1:9092") as admin:
        for state in await admin.describe_groups(["billing"]):
            print(state.group, state.state, len(state.members))

Each question goes to as few brokers as possible, with many items in one request. Each answer is `Rows`: a
broker, group or partition that fails is named there, and does not fail the rest.

Coordinators and leaders move, and a coordinator loads before it answers. `patience_s` says how long such
passing errors are waited out; without it, they are in the answer.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kelpie.client.admin import changes, controller
from kelpie.client.admin.asking import Asking, Clock, together, wall_clock
from kelpie.client.admin.committed import fetch_offsets, needs_names
from kelpie.client.admin.groups import describe_groups, listed_state
from kelpie.client.admin.log_ends import OffsetAt, ask_ends, ask_offsets_at
from kelpie.client.admin.log_sizes import ask_sizes
from kelpie.client.admin.rounds import Rounds
from kelpie.client.admin.rows import PartitionChange, Reassignment, Rows
from kelpie.client.admin.settings import ask_broker_settings, ask_topic_settings
from kelpie.client.admin.topics import ask_metadata, views_of
from kelpie.client.admin.transactions import ask_transactions
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.errors import ErrorCode, describe
from kelpie.model.names import TopicPartition
from kelpie.observations import (
    BrokerView,
    Committed,
    CoordinatorAnswer,
    GroupState,
    LogEnds,
    LogSize,
    OpenTransaction,
    PartitionView,
    Setting,
)
from kelpie.questions.offset_commit import OffsetToCommit
from kelpie.questions.question import by_topic
from kelpie.wire.api.delete_groups import DeleteGroupsRequest
from kelpie.wire.api.list_groups import ListedGroup, ListGroupsRequest

if TYPE_CHECKING:
    from typing import Self

_COMPUTED = "Metadata"
"""How a coordinator was found: from the metadata of the offsets topic."""


class Admin:
    """An admin client for one cluster. `Admin.open` connects; `close` ends all connections."""

    def __init__(self, nodes: Nodes, *, patience_s: float = 0.0, clock: Clock = wall_clock) -> None:
        """For connections that exist already. They stay open when this admin client is closed."""
        self._rounds = Rounds(nodes, patience_s, clock)

    @classmethod
    async def open(
        cls, where: str | Settings, *, patience_s: float = 0.0, clock: Clock = wall_clock
    ) -> "Admin":
        """Connects: `where` are bootstrap servers, or settings (see `settings_of` for properties).

        Raises BadSettings, and ClientError if no bootstrap server answers.
        """
        settings = Settings.of(where) if isinstance(where, str) else where
        admin = cls(await Nodes.open(settings), patience_s=patience_s, clock=clock)
        admin._rounds.owns_nodes = True
        return admin

    async def close(self) -> None:
        if self._rounds.owns_nodes:
            await self._rounds.nodes.close()

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # The cluster

    async def brokers(self) -> Rows[BrokerView]:
        """All brokers that the cluster lists, and whether each can be reached from here."""
        asking = await self._rounds.begin()
        at = self._rounds.clock()
        rows = []
        for node, broker in asking.nodes.brokers.items():
            why, source = asking.why_not(node), asking.source(node)
            rows.append(BrokerView(node, *broker.address, broker.rack, not why, why, "", at, source))
        return Rows(rows)

    async def topics(self, names: Sequence[str] | None = None) -> Rows[PartitionView]:
        """The partitions of these topics, or of all topics, as the first broker that answers sees them."""
        asking = await self._rounds.begin()
        for node in asking.reached:
            try:
                response, at = await ask_metadata(asking, node, names)
            except ClientError:
                continue  # The next broker knows the topics as well.
            source = asking.source(node)
            wanted = None if names is None else set(names)
            for topic in response.topics:
                if wanted is not None and topic.name not in wanted:
                    continue
                asking.seen.partitions += views_of(topic, node, at, source)
                if topic.error_code:
                    asking.unasked("topic", [topic.name], describe(topic.error_code), source)
            break
        else:
            asking.unasked("topic", names or ["all"], "No broker answered.")
        return Rows(asking.seen.partitions, unasked=asking.seen.unasked)

    async def settings(self, topics: Sequence[str] | None = None) -> Rows[Setting]:
        """The settings that matter to groups: of these topics, or of all brokers."""
        asking = await self._rounds.begin()
        if topics is not None:
            await ask_topic_settings(asking, topics)
        else:
            await together(*(ask_broker_settings(asking, node) for node in asking.reached))
        return Rows(asking.seen.settings, unasked=asking.seen.unasked)

    # Groups

    async def list_groups(self) -> Rows[GroupState]:
        """All groups, without members: each broker lists the groups that it coordinates."""
        asking = await self._rounds.begin()
        rows: list[GroupState] = []

        async def ask(node: int) -> None:
            groups = await self._listed(asking, node)
            at, source = self._rounds.clock(), asking.source(node)
            rows.extend(listed_state(group, node, at, source) for group in groups)

        await together(*map(ask, asking.nodes.brokers))
        return Rows(rows, unasked=asking.seen.unasked)

    async def describe_all_groups(self) -> Rows[GroupState]:
        """State and members of all groups: each broker describes the groups that it lists.

        No coordinator is looked up: KoP notes each FindCoordinator as if a consumer had sent it.
        """
        asking = await self._rounds.begin()

        async def ask(node: int) -> None:
            groups = {group.group_id: group for group in await self._listed(asking, node)}
            if groups:
                await describe_groups(asking, node, list(groups), groups)

        await together(*map(ask, asking.nodes.brokers))
        return Rows(asking.seen.states, unasked=asking.seen.unasked)

    async def _listed(self, asking: Asking, node: int) -> Sequence[ListedGroup]:
        """The groups that a broker lists. If it does not answer, there is an Unasked row for the broker."""
        source = asking.source(node)
        if node not in asking.reached:
            asking.unasked("broker", [node], asking.why_not(node), source)
            return ()
        with asking.noting("broker", [node], source):
            response, _ = await asking.ask(node, ListGroupsRequest())
            if response.error_code:
                asking.unasked("broker", [node], describe(response.error_code), source)
            return tuple(response.groups)
        return ()

    async def coordinators(self, groups: Sequence[str]) -> Rows[CoordinatorAnswer]:
        """The coordinator of each group. Asking creates no offsets topic."""

        async def note(asking: Asking, node: int, names: Sequence[str]) -> None:
            address, at = str(asking.nodes.brokers[node].address), self._rounds.clock()
            asking.seen.answers += [
                CoordinatorAnswer(name, _COMPUTED, ErrorCode.NONE, None, node, address, at=at)
                for name in names
            ]

        return await self._rounds.of_groups(
            groups, note, lambda asking: [row for row in asking.seen.answers if row.asked == _COMPUTED]
        )

    async def describe_groups(self, groups: Sequence[str]) -> Rows[GroupState]:
        """State and members of groups, classic ones and those of KIP-848.

        A group that does not exist has the state "Dead".
        """

        async def ask(asking: Asking, node: int, names: Sequence[str]) -> None:
            await describe_groups(asking, node, names, {})

        return await self._rounds.of_groups(groups, ask, lambda asking: asking.seen.states)

    async def committed(
        self,
        groups: Sequence[str],
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = True,
    ) -> Rows[Committed]:
        """What groups have committed: in these partitions, or everywhere.

        With `require_stable`, an offset that an open transaction is about to change is an error of its row.
        """
        wanted = None if partitions is None else by_topic(sorted(set(partitions)))

        async def ask(asking: Asking, node: int, names: Sequence[str]) -> None:
            named = wanted
            with asking.noting("group", names, asking.source(node)):
                if wanted is None and needs_names(asking, node):
                    response, _ = await ask_metadata(asking, node, None)
                    named = {
                        topic.name: [row.partition_index for row in topic.partitions]
                        for topic in response.topics
                    }
                by_group = dict.fromkeys(names, named) if named is not None else None
                await fetch_offsets(
                    asking,
                    node,
                    names,
                    by_group,
                    only_named=wanted is not None,
                    require_stable=require_stable,
                )

        return await self._rounds.of_groups(
            groups, ask, lambda asking: asking.seen.committed, may_be_missing=True
        )

    async def commit(
        self, group: str, offsets: Mapping[TopicPartition, int | OffsetToCommit]
    ) -> Rows[PartitionChange]:
        """Commits offsets for a group without members. A group that has members refuses that."""
        to_commit = {
            name: offset if isinstance(offset, OffsetToCommit) else OffsetToCommit(offset)
            for name, offset in offsets.items()
        }

        async def ask(asking: Asking, node: int, _: Sequence[str]) -> None:
            await changes.commit_offsets(asking, node, group, to_commit)

        return await self._rounds.of_groups([group], ask, lambda asking: asking.changes, creates=True)

    async def delete_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> Rows[PartitionChange]:
        """Deletes committed offsets of partitions that no member of the group subscribes to."""

        async def ask(asking: Asking, node: int, _: Sequence[str]) -> None:
            await changes.delete_offsets(asking, node, group, partitions)

        return await self._rounds.of_groups([group], ask, lambda asking: asking.changes)

    async def delete_groups(self, groups: Sequence[str]) -> Rows[CoordinatorAnswer]:
        """Deletes groups without members, and their offsets (Kafka 1.1 and later)."""
        return await self._rounds.of_groups(groups, changes.delete_groups, lambda asking: asking.changes)

    async def can_delete_groups(self, node: int) -> bool:
        """Whether a broker knows how to delete groups. Raises ClientError."""
        return (await self._rounds.nodes.versions(node)).speaks(DeleteGroupsRequest)

    # Partitions

    async def log_ends(self, partitions: Iterable[TopicPartition]) -> Rows[LogEnds]:
        """Where partitions begin and end, and their last stable offsets."""

        async def attempt(asking: Asking, names: Sequence[TopicPartition]) -> Iterable[LogEnds]:
            await ask_ends(asking, await self._rounds.leaders(asking, names))
            return asking.seen.ends

        return await self._rounds.patiently(sorted(set(partitions)), attempt, lambda row: str(row.name))

    async def log_sizes(self, partitions: Iterable[TopicPartition]) -> Rows[LogSize]:
        """How many bytes the logs of partitions have on their leaders (Kafka 1.0 and later)."""

        async def attempt(asking: Asking, names: Sequence[TopicPartition]) -> Iterable[LogSize]:
            await ask_sizes(asking, await self._rounds.leaders(asking, names))
            return asking.seen.sizes

        return await self._rounds.patiently(sorted(set(partitions)), attempt, lambda row: str(row.name))

    async def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAt]:
        """The first offset at or after each time (milliseconds since 1970), from the leaders."""
        asking = await self._rounds.begin()
        leaders = await self._rounds.leaders(asking, list(times))
        offsets = {
            name: OffsetAt(failure=row.reason)
            for row in asking.seen.unasked
            for name in times
            if str(name) == row.name
        }
        by_leader = {node: {name: times[name] for name in names} for node, names in leaders.items()}
        parts = await asyncio.gather(*(ask_offsets_at(asking.nodes, *asked) for asked in by_leader.items()))
        for part in parts:
            offsets |= part
        return offsets

    async def open_transactions(self, partitions: Iterable[TopicPartition]) -> Rows[OpenTransaction]:
        """Transactions that are open in these partitions, with what their coordinators know."""
        asking = await self._rounds.begin()
        await ask_transactions(asking, await self._rounds.leaders(asking, sorted(set(partitions))))
        return Rows(asking.seen.transactions, unasked=asking.seen.unasked)

    async def elect(
        self, partitions: Iterable[TopicPartition], *, unclean: bool = False
    ) -> Rows[PartitionChange]:
        """Elects the preferred leaders; with `unclean`, replicas that are out of sync. Raises ClientError."""
        return await controller.elect(self._rounds.nodes, partitions, unclean=unclean)

    async def reassign(
        self, replicas: Mapping[TopicPartition, Sequence[int] | None]
    ) -> Rows[PartitionChange]:
        """Begins reassignments to these replicas; None cancels one. Raises ClientError."""
        return await controller.reassign(self._rounds.nodes, replicas)

    async def reassignments(self, partitions: Iterable[TopicPartition] | None = None) -> Rows[Reassignment]:
        """The reassignments under way. Raises ClientError."""
        return await controller.list_reassignments(self._rounds.nodes, partitions)
