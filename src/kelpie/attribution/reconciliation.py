"""Members of groups against the mapping tree: what is missing, wrong, ambiguous or leaked, and what mends it.

The tree is listed once and compared here; nothing asks for one member at a time.

| what is seen | difference | what mends it |
|---|---|---|
| a member's node does not exist | missing | create it |
| the node names a group that has no member at this address | wrong | set it to the member's group |
| members of two groups share one address | ambiguous | nothing: any value would be a guess |
| no member has the node's address | leaked | delete it when it has been leaked for the grace time |
| ZooKeeper takes no node of the member's name | unmappable | nothing can |

Missing nodes are created and not set: a broker that writes one in the meantime keeps its value.

What is not judged: a node whose group is not among `groups`. A coordinator knows the members of its own
groups only, and a command those of the groups that answered; other nodes stay as they are.

Leaked is a weak word. A consumer that only calls assign() has a node and no membership. A member that was
removed after a pause joins again without FindCoordinator, and would need its node. So a leaked node is
deleted only when it has stayed leaked for the grace time, and not if a member of the same group and client id
has no node of its own: that client is probably seen with two addresses (NAT, a proxy before some brokers).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kelpie.attribution.addresses import (
    KOP_ROOT,
    ClientAddress,
    mapping_path,
    node_value,
    read_mapping_path,
)
from kelpie.attribution.requests import Create, Delete, Put
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant


@dataclass(frozen=True, slots=True)
class MappedMember:
    """A member as its coordinator describes it. The host is the coordinator's text, without "/"."""

    group: str
    member_id: str
    client: ClientAddress
    assigned: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingMapping:
    path: str
    group: str
    members: tuple[MappedMember, ...]
    is_empty: bool = False
    """The node exists without a value: it lies above the node of a client id with "/" in it."""


@dataclass(frozen=True, slots=True)
class WrongMapping:
    path: str
    group: str
    """The group of the members at this address."""
    mapped: str
    """The group that the node names."""
    members: tuple[MappedMember, ...]


@dataclass(frozen=True, slots=True)
class AmbiguousMapping:
    """One address, members of several groups."""

    path: str
    groups: tuple[str, ...]
    mapped: str | None
    """None: there is no node."""
    shared: tuple[TopicPartition, ...]
    """Partitions that two of the groups read from this address: the assignment does not tell them apart."""
    members: tuple[MappedMember, ...]


@dataclass(frozen=True, slots=True)
class LeakedMapping:
    path: str
    group: str
    since: Instant
    """When it was first seen leaked."""
    is_due: bool
    """The grace time is over."""
    elsewhere: tuple[MappedMember, ...] = ()
    """Members of this group and client id that have no node at their own address."""
    has_children: bool = False
    """ZooKeeper deletes no node that has children. Its value is emptied instead."""

    @property
    def is_deletable(self) -> bool:
        return self.is_due and not self.elsewhere


@dataclass(frozen=True)
class Reconciliation:
    """All differences between members and tree, each kind in the order of paths."""

    correct: int = 0
    """Nodes that name the only group at their address."""
    missing: tuple[MissingMapping, ...] = ()
    wrong: tuple[WrongMapping, ...] = ()
    ambiguous: tuple[AmbiguousMapping, ...] = ()
    leaked: tuple[LeakedMapping, ...] = ()
    unmappable: tuple[MappedMember, ...] = ()
    unjudged: tuple[tuple[str, str], ...] = ()
    """Path and group of nodes that cannot be judged: the members of the group are not known here."""
    leaked_since: Mapping[str, Instant] = field(default_factory=dict)
    """For the next reconciliation: when each node was first seen leaked."""

    @property
    def is_clean(self) -> bool:
        return not (self.missing or self.wrong or self.ambiguous or self.leaked or self.unmappable)

    def requests(
        self, broker: int, versions: Mapping[str, int] | None = None
    ) -> tuple[Put | Create | Delete, ...]:
        """What mends the differences, in the order of paths.

        `versions` are those that the nodes had when they were listed. With them, a node that has changed
        since stays as it is; a path without one was not listed, and is created.
        """
        known = versions or {}
        requests: list[Put | Create | Delete] = []
        for missing in self.missing:
            path, value = missing.path, node_value(missing.group)
            if missing.is_empty:
                requests.append(Put(broker, path, value, known.get(path)))
            else:
                requests.append(Create(broker, path, value))
        requests += [
            Put(broker, wrong.path, node_value(wrong.group), known.get(wrong.path)) for wrong in self.wrong
        ]
        for leaked in self.leaked:
            version = known.get(leaked.path)
            if leaked.is_deletable and leaked.has_children:
                requests.append(Put(broker, leaked.path, b"", version))
            elif leaked.is_deletable:
                requests.append(Delete(broker, leaked.path, version))
        return tuple(sorted(requests, key=lambda request: request.path))


@dataclass(slots=True)
class ReconciliationCounts:
    """How much was found and mended, over any number of reconciliations."""

    rounds: int = 0
    created: int = 0
    corrected: int = 0
    deleted: int = 0
    ambiguous: int = 0

    def add(self, reconciliation: Reconciliation) -> None:
        self.rounds += 1
        self.created += len(reconciliation.missing)
        self.corrected += len(reconciliation.wrong)
        self.deleted += sum(row.is_deletable for row in reconciliation.leaked)
        self.ambiguous += len(reconciliation.ambiguous)


def reconcile(
    members: Iterable[MappedMember],
    listing: Mapping[str, str],
    leaked_since: Mapping[str, Instant],
    now: Instant,
    grace: int,
    *,
    groups: Collection[str] | None = None,
    root: str = KOP_ROOT,
) -> Reconciliation:
    """Compare members with a listing of the tree: path → group. An empty value is no mapping.

    `groups` are those whose members are all given; if it is left out, the groups of the given members.
    `leaked_since` is that of the reconciliation before; `grace` is in milliseconds.
    """
    by_path, unmappable = _by_path(members, root)
    judged = {member.group for rows in by_path.values() for member in rows} if groups is None else groups
    missing: list[MissingMapping] = []
    wrong: list[WrongMapping] = []
    ambiguous: list[AmbiguousMapping] = []
    leaked: list[LeakedMapping] = []
    unjudged: list[tuple[str, str]] = []
    for path, at_address in _differing(by_path, listing):
        mapped = listing.get(path) or None
        sharing = tuple(sorted({member.group for member in at_address}))
        if len(sharing) > 1:
            shared = _shared_partitions(at_address)
            ambiguous.append(AmbiguousMapping(path, sharing, mapped, shared, tuple(at_address)))
        elif mapped is None:
            missing.append(MissingMapping(path, sharing[0], tuple(at_address), path in listing))
        elif mapped == sharing[0]:
            continue
        elif mapped in judged:
            wrong.append(WrongMapping(path, sharing[0], mapped, tuple(at_address)))
        else:
            unjudged.append((path, mapped))  # That group may have a member at this address, too.
    homeless = _by_group_and_client(row for difference in missing for row in difference.members)
    others = sorted(item for item in listing.items() if item[1] and item[0] not in by_path)
    parents = {path.rpartition("/")[0] for path in listing} if others else set()
    for path, group in others:
        if group not in judged:
            unjudged.append((path, group))
            continue
        since = leaked_since.get(path, now)
        client = read_mapping_path(path, root)
        elsewhere = homeless.get((group, client.client_id), ()) if client is not None else ()
        is_due = now - since >= grace
        leaked.append(LeakedMapping(path, group, since, is_due, tuple(elsewhere), path in parents))
    correct = len(by_path) - len(missing) - len(wrong) - len(ambiguous)
    correct -= sum(path in by_path for path, _ in unjudged)
    return Reconciliation(
        correct,
        tuple(missing),
        tuple(wrong),
        tuple(ambiguous),
        tuple(leaked),
        tuple(unmappable),
        tuple(sorted(unjudged)),
        {row.path: row.since for row in leaked},
    )


def _differing(
    by_path: Mapping[str, list[MappedMember]], listing: Mapping[str, str]
) -> list[tuple[str, list[MappedMember]]]:
    """Addresses in order, without those of one member whose node is right: nearly all of them are."""
    return sorted(
        (path, at_address)
        for path, at_address in by_path.items()
        if len(at_address) > 1 or listing.get(path) != at_address[0].group or not at_address[0].group
    )


def _by_path(
    members: Iterable[MappedMember], root: str
) -> tuple[dict[str, list[MappedMember]], list[MappedMember]]:
    by_path: dict[str, list[MappedMember]] = {}
    unmappable: list[MappedMember] = []
    for member in members:
        path = mapping_path(member.client, root)
        if path is None:
            unmappable.append(member)
        else:
            by_path.setdefault(path, []).append(member)
    return by_path, unmappable


def _by_group_and_client(members: Iterable[MappedMember]) -> dict[tuple[str, str], list[MappedMember]]:
    grouped: dict[tuple[str, str], list[MappedMember]] = {}
    for member in members:
        grouped.setdefault((member.group, member.client.client_id), []).append(member)
    return grouped


def _shared_partitions(members: Iterable[MappedMember]) -> tuple[TopicPartition, ...]:
    readers: dict[TopicPartition, set[str]] = {}
    for member in members:
        for partition in member.assigned:
            readers.setdefault(partition, set()).add(member.group)
    return tuple(sorted(partition for partition, groups in readers.items() if len(groups) > 1))
