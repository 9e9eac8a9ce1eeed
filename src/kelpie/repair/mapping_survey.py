"""The members of all groups and the mapping tree in ZooKeeper, asked for and compared.

Requests are few: ListGroups and DescribeGroups of each broker, and the tree in parts of 2,000 nodes.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from kelpie.attribution.addresses import KOP_ROOT, described_client, read_node_value
from kelpie.attribution.reconciliation import MappedMember, Reconciliation, reconcile
from kelpie.client.admin.admin import Admin
from kelpie.client.mapping_store import LIMIT_S, ZooKeeperStore, opened
from kelpie.client.nodes import Nodes
from kelpie.client.survey import wall_clock
from kelpie.client.zookeeper import ZooKeeperError
from kelpie.client.zookeeper_nodes import TreeNode
from kelpie.errors import ErrorCode
from kelpie.evidence.mapping_dumps import write_listing
from kelpie.observations import GroupState
from kelpie.observations.groups import CLASSIC, CONSUMER
from kelpie.observations.mapping_tree import StoredValue
from kelpie.repair.picture import survey_cluster
from kelpie.repair.plan import CannotRepair

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MappingTree:
    """Where the tree is: servers of ZooKeeper, written HOST:PORT[,…][/PATH], and the root of the tree."""

    hosts: str
    root: str = KOP_ROOT
    """KoP's setting groupIdZooKeeperPath."""
    limit_s: float = LIMIT_S

    async def use(self, work: Callable[[ZooKeeperStore], T], *, read_only: bool = False) -> T:
        """Connects and does some work, in a thread of its own. Raises CannotRepair."""

        def run() -> T:
            with opened(self.hosts, self.limit_s, read_only=read_only) as store:
                return work(store)

        try:
            return await asyncio.to_thread(run)
        except ZooKeeperError as error:
            raise CannotRepair(str(error)) from None


@dataclass(frozen=True)
class MappingSurvey:
    """Members and tree at one time, and how they differ."""

    reconciliation: Reconciliation
    nodes: Mapping[str, TreeNode]
    has_root: bool
    members: tuple[MappedMember, ...]
    groups: frozenset[str] = frozenset()
    """The groups whose members are known."""
    without_members: frozenset[str] = frozenset()
    failures: Mapping[str, str] = field(default_factory=dict)
    """By broker or group: why it could not be asked."""

    def listing(self, root: str) -> str:
        """The tree as a text that `kelpie doctor --evidence` reads: one node a line."""
        nodes = {path: StoredValue(node.value, node.version) for path, node in self.nodes.items()}
        return write_listing(nodes if self.has_root else None, root)

    @property
    def versions(self) -> dict[str, int]:
        return {path: node.version for path, node in self.nodes.items()}


async def survey_mappings(nodes: Nodes, tree: MappingTree) -> MappingSurvey:
    """Asks for members and tree. Raises CannotRepair if ZooKeeper does not answer, ClientError."""
    listing = await tree.use(lambda store: store.tree(tree.root), read_only=True)
    states = await Admin(nodes).describe_all_groups()
    groups_by_path = {path: read_node_value(node.value) for path, node in (listing or {}).items()}
    members = tuple(mapped_members(states))
    described = {state.group for state in states if _is_described(state)}
    failures = states.failures
    if not any(failure.startswith("broker ") for failure in failures):
        listed = {state.group for state in states} | {row.name for row in states.unasked}
        described |= await _without_members(nodes, set(filter(None, groups_by_path.values())) - listed)
    now = wall_clock()
    return MappingSurvey(
        reconcile(members, groups_by_path, {}, now, 0, groups=described, root=tree.root),
        listing or {},
        listing is not None,
        members,
        frozenset(described),
        frozenset(described - {member.group for member in members}),
        failures,
    )


async def _without_members(nodes: Nodes, unlisted: set[str]) -> set[str]:
    """Of the groups that no broker lists, those whose coordinator would list them."""
    if not unlisted:
        return set()
    cluster = await survey_cluster(nodes)
    homes = {group: cluster.home_of(group) for group in unlisted}
    return {group for group, home in homes.items() if home is None or cluster.has_leader(home)}


def mapped_members(states: Iterable[GroupState]) -> Iterable[MappedMember]:
    """Members as the tree would name them."""
    for state in states:
        for member in state.members:
            client = described_client(member.host, member.client_id)
            yield MappedMember(state.group, member.member_id, client, member.assigned or ())


def _is_described(state: GroupState) -> bool:
    return state.error is ErrorCode.NONE and state.kind in (CLASSIC, CONSUMER)
