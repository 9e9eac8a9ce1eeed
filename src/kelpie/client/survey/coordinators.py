"""Who coordinates which group: computed from the offsets topic, asked only where brokers disagree.

A group lives on one partition of the offsets topic; who leads that partition coordinates it. Brokers are
asked (FindCoordinator) for partitions that are disputed: they name different leaders, there is none, it
cannot be reached, or it denies. The answer depends on the partition alone, so one group of each stands for
all in it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kelpie.client.failures import ClientError
from kelpie.client.survey.asking import Asking, each, error_of, together
from kelpie.client.survey.topics import best_views
from kelpie.errors import ErrorCode
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, CoordinatorAnswer
from kelpie.observations.cluster import NO_LEADER
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest

_SEVERAL_KEYS = 4
_UNDER_WAY = 32


class Coordinators:
    """The offsets topic, as far as it could be seen."""

    def __init__(self, asking: Asking, listed: Mapping[int, Iterable[str]]) -> None:
        self._asking = asking
        views = [view for view in asking.seen.partitions if view.topic == OFFSETS_TOPIC]
        self.is_missing = bool(views) and all(view.partition < 0 for view in views)
        views = [view for view in views if view.partition >= 0]
        self.leaders = {name.partition: view.leader for name, view in best_views(views).items()}
        self.count = len({view.partition for view in views})
        self._lister = {group: node for node, groups in listed.items() for group in groups}
        self._partitions: dict[str, int] = {}
        self._looked_up: set[int] = set()
        self.named: dict[int, int] = {}
        """By partition: whom most brokers name, where they were asked."""
        said: defaultdict[int, set[int]] = defaultdict(set)
        for view in views:
            said[view.partition].add(view.leader)
        reached = set(asking.reached)
        self.disputed = {
            partition
            for partition, leader in self.leaders.items()
            if len(said[partition]) > 1 or leader not in reached
        }

    def partition_of(self, group: str) -> int:
        partition = self._partitions.get(group)
        if partition is None:
            partition = self._partitions[group] = partition_for(group, self.count)
        return partition

    def of(self, group: str) -> int | None:
        """The node to ask about a group. Where the topic may not be looked at, whoever lists the group."""
        if not self.count:
            return self._lister.get(group)
        partition = self.partition_of(group)
        leader = self.leaders.get(partition)
        if leader not in self._asking.reached:
            return self.named.get(partition, leader)
        return leader

    def by_node(self, groups: Iterable[str]) -> dict[int, list[str]]:
        """Groups by the broker to ask. Those that nobody can be asked about become rows that say so."""
        found: defaultdict[int | None, list[str]] = defaultdict(list)
        for group in groups:
            found[self.of(group)].append(group)
        reached = set(self._asking.reached)
        for node, names in found.items():
            if node not in reached:
                self._say_lost(node, names)
        return {node: names for node, names in found.items() if node is not None and node in reached}

    def _say_lost(self, node: int | None, groups: Sequence[str]) -> None:
        unasked = self._asking.unasked
        if self.is_missing:
            unasked("group", groups, f"There is no topic {OFFSETS_TOPIC}, so no group has a coordinator.")
        elif node is None:
            unasked("group", groups, f"{OFFSETS_TOPIC} cannot be looked at, and no broker lists the group.")
        elif node < 0:
            for group in groups:
                partition = self.partition_of(group)
                unasked(
                    "group", [group], f"Its coordinator is nobody: {OFFSETS_TOPIC}-{partition} has no leader."
                )
        else:
            why = self._asking.why_not(node)
            unasked("group", groups, f"Its coordinator, broker {node}, cannot be asked. {why}")

    async def look_up(self, partitions: Iterable[int], groups: Iterable[str]) -> None:
        """Asks every broker who coordinates these partitions; `named` then has whom most of them name."""
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
        # Who says that there is nobody has a vote as well: a broker that is cut off names itself for ever.
        self.named |= {
            partition: max(own, key=lambda node: (own[node], node)) for partition, own in votes.items()
        }

    async def _ask(
        self, node: int, inhabitants: Mapping[int, Sequence[str]], votes: Mapping[int, Counter[int]]
    ) -> None:
        asking = self._asking
        source = asking.source(node)
        samples = {groups[0]: partition for partition, groups in inhabitants.items()}

        def note(sample: str, answer: Any, at: Instant) -> None:
            """Old answers and the entries of new ones have the same fields."""
            error = error_of(answer.error_code)
            partition = samples[sample]
            where = f"{answer.host}:{answer.port}" if answer.host else ""
            # Not being allowed to ask for one group says nothing about the others.
            alike = [sample] if error is ErrorCode.GROUP_AUTHORIZATION_FAILED else inhabitants[partition]
            message = answer.error_message or ""
            asking.seen.answers += [
                CoordinatorAnswer(
                    group, "FindCoordinator", error, node, answer.node_id, where, message, at, source
                )
                for group in alike
            ]
            votes[partition][answer.node_id if error is ErrorCode.NONE else NO_LEADER] += 1

        async def ask_one(sample: str) -> None:
            answer, at = await asking.ask(node, FindCoordinatorRequest(key=sample))
            note(sample, answer, at)

        try:
            if asking.versions[node].speaks(FindCoordinatorRequest, at_least=_SEVERAL_KEYS):
                response, at = await asking.ask(node, FindCoordinatorRequest(coordinator_keys=list(samples)))
                for entry in response.coordinators:
                    note(entry.key, entry, at)
            else:
                await each(list(samples), ask_one, _UNDER_WAY)
        except ClientError as error:
            reason = f"It was not asked for coordinators. {error.reason}"
            asking.unasked("broker", [str(node)], reason, source)
