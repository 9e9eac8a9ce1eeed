"""The coordinators of groups: computed from the offsets topic; FindCoordinator only where that fails.

A group belongs to one partition of the offsets topic; the leader of that partition coordinates the group.
FindCoordinator creates the offsets topic where there is none, so it is not the first choice. Brokers are
asked for disputed partitions: they name different leaders, there is no leader, it cannot be reached, or it
denies. The answer depends on the partition alone, so one group of each partition stands for all of them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kelpie.client.admin.asking import Asking, each, error_of, together
from kelpie.client.admin.topics import best_views
from kelpie.client.client_errors import ClientError
from kelpie.errors import ErrorCode
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, CoordinatorAnswer, PartitionView
from kelpie.observations.cluster import NO_LEADER
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest

_SEVERAL_KEYS = 4
_UNDER_WAY = 32


class GroupCoordinators:
    """By what brokers say of the offsets topic (`views`), and by the broker that lists a group (`listed`)."""

    def __init__(
        self, asking: Asking, views: Iterable[PartitionView], listed: Mapping[int, Iterable[str]]
    ) -> None:
        self._asking = asking
        views = [view for view in views if view.topic == OFFSETS_TOPIC]
        self.is_missing = bool(views) and all(view.partition < 0 for view in views)
        views = [view for view in views if view.partition >= 0]
        self.leaders = {name.partition: view.leader for name, view in best_views(views).items()}
        self.count = len({view.partition for view in views})
        self._lister = {group: node for node, groups in listed.items() for group in groups}
        self._partitions: dict[str, int] = {}
        self._looked_up: set[int] = set()
        self.named: dict[int, int] = {}
        """By partition: the broker that most brokers name, where they were asked."""
        leaders_told: defaultdict[int, set[int]] = defaultdict(set)
        for view in views:
            leaders_told[view.partition].add(view.leader)
        reached = set(asking.reached)
        self.disputed = {
            partition
            for partition, leader in self.leaders.items()
            if len(leaders_told[partition]) > 1 or leader not in reached
        }

    def partition_of(self, group: str) -> int:
        partition = self._partitions.get(group)
        if partition is None:
            partition = self._partitions[group] = partition_for(group, self.count)
        return partition

    def of(self, group: str) -> int | None:
        """The node to ask about a group; where the offsets topic is not visible, the one that lists it."""
        if not self.count:
            return self._lister.get(group)
        partition = self.partition_of(group)
        leader = self.leaders.get(partition)
        if leader not in self._asking.reached:
            return self.named.get(partition, leader)
        return leader

    def by_node(self, groups: Iterable[str]) -> dict[int, list[str]]:
        """Groups by the broker to ask. A group whose coordinator cannot be asked becomes an Unasked row."""
        by_node: defaultdict[int | None, list[str]] = defaultdict(list)
        for group in groups:
            by_node[self.of(group)].append(group)
        reached = set(self._asking.reached)
        for node, names in by_node.items():
            if node not in reached:
                self._say_lost(node, names)
        return {node: names for node, names in by_node.items() if node is not None and node in reached}

    async def find(self, groups: Sequence[str]) -> None:
        """Asks the brokers, one after the other, for the coordinators of groups that views do not tell.

        This creates the offsets topic where there is none. Raises ClientError if no broker answers.
        """
        reasons = [self._asking.why_not(node) for node in self._asking.nodes.brokers]
        failure = ClientError(" ".join(reasons) or "The cluster lists no brokers.")
        for node in self._asking.reached:
            source = self._asking.source(node)

            def note(group: str, answer: Any, at: Instant, node: int = node, source: str = source) -> None:
                self._asking.seen.answers.append(_answer_row(group, answer, node, at, source))
                self._lister[group] = NO_LEADER if answer.error_code else answer.node_id

            try:
                await _ask_coordinators(self._asking, node, groups, note)
                return
            except ClientError as error:
                failure = error
        raise failure

    def _say_lost(self, node: int | None, groups: Sequence[str]) -> None:
        unasked = self._asking.unasked
        if node is not None and node < 0 and not self.count:
            unasked("group", groups, "No broker names its coordinator yet.")
        elif self.is_missing:
            unasked("group", groups, f"There is no topic {OFFSETS_TOPIC}, so no group has a coordinator.")
        elif node is None:
            unasked("group", groups, f"{OFFSETS_TOPIC} cannot be looked at, and no broker lists the group.")
        elif node < 0:
            for group in groups:
                partition = f"{OFFSETS_TOPIC}-{self.partition_of(group)}"
                unasked("group", [group], f"Its coordinator is nobody: {partition} has no leader.")
        else:
            why = self._asking.why_not(node)
            unasked("group", groups, f"Its coordinator, broker {node}, cannot be asked. {why}")

    async def look_up(self, partitions: Iterable[int], groups: Iterable[str]) -> None:
        """Asks every broker who coordinates these partitions; `named` then has the answer of most."""
        wanted = set(partitions) - self._looked_up
        if not wanted:
            return
        self._looked_up |= wanted
        inhabitants: defaultdict[int, list[str]] = defaultdict(list)
        for group in groups:
            partition = self.partition_of(group)
            if partition in wanted:
                inhabitants[partition].append(group)
        if not inhabitants:
            return
        votes: defaultdict[int, Counter[int]] = defaultdict(Counter)
        await together(*(self._ask(node, inhabitants, votes) for node in self._asking.reached))
        # "No coordinator" is a vote as well: a broker that is cut off names itself for ever.
        self.named |= {
            partition: max(count, key=lambda node: (count[node], node)) for partition, count in votes.items()
        }

    async def _ask(
        self, node: int, inhabitants: Mapping[int, Sequence[str]], votes: Mapping[int, Counter[int]]
    ) -> None:
        asking = self._asking
        source = asking.source(node)
        samples = {groups[0]: partition for partition, groups in inhabitants.items()}

        def note(sample: str, answer: Any, at: Instant) -> None:
            row = _answer_row(sample, answer, node, at, source)
            partition = samples[sample]
            # Not being allowed to ask for one group says nothing about the others.
            refused = row.error is ErrorCode.GROUP_AUTHORIZATION_FAILED
            groups = [sample] if refused else inhabitants[partition]
            asking.seen.answers += [replace(row, group=group) for group in groups]
            votes[partition][row.node_id if row.error is ErrorCode.NONE else NO_LEADER] += 1

        with asking.noting("broker", [node], source, "It was not asked for coordinators."):
            await _ask_coordinators(asking, node, list(samples), note)


async def _ask_coordinators(
    asking: Asking, node: int, groups: Sequence[str], note: Callable[[str, Any, Instant], None]
) -> None:
    """One broker's answer for each group. Raises ClientError."""

    async def ask_one(group: str) -> None:
        answer, at = await asking.ask(node, FindCoordinatorRequest(key=group))
        note(group, answer, at)

    if asking.versions[node].speaks(FindCoordinatorRequest, at_least=_SEVERAL_KEYS):
        response, at = await asking.ask(node, FindCoordinatorRequest(coordinator_keys=list(groups)))
        asked = set(groups)
        for entry in response.coordinators:
            if entry.key in asked:
                asked.discard(entry.key)
                note(entry.key, entry, at)
        if asked:
            reason = f"Of {len(groups)} groups, it did not say for {len(asked)} who coordinates them."
            asking.unasked("broker", [node], reason, asking.source(node))
    else:
        await each(list(groups), ask_one, _UNDER_WAY)


def _answer_row(group: str, answer: Any, node: int, at: Instant, source: str) -> CoordinatorAnswer:
    """Answers of old versions and the entries of new ones have the same fields."""
    address = f"{answer.host}:{answer.port}" if answer.host else ""
    message = answer.error_message or ""
    error = error_of(answer.error_code)
    return CoordinatorAnswer(
        group, "FindCoordinator", error, node, answer.node_id, address, message, at, source
    )
