"""KoP's mapping of clients to groups over time: which node said what in which listing of the tree.

A node is removed when the connection that asked for the coordinator closes. So a node that is gone is no
fault by itself: its consumer may have been closed. Listings of which no times are known may have been made
before or after everything else that was seen; only their own order is known.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from kelpie.model.time import Instant
from kelpie.observations import MappingListing, MappingNode


@dataclass(frozen=True, slots=True)
class ListedMappings:
    """One listing of the tree."""

    listing: MappingListing
    nodes: Mapping[str, MappingNode]
    """By path."""


class Vanished(NamedTuple):
    """A node that one listing has and the next one has not, nor any later one."""

    node: MappingNode
    gone: ListedMappings
    """The first listing without it."""


class Overwritten(NamedTuple):
    """A node that names one group in one listing, and another group in the next one."""

    before: MappingNode
    after: MappingNode


@dataclass(frozen=True)
class MappingHistory:
    listings: tuple[ListedMappings, ...]
    """In order of time."""

    @property
    def is_known(self) -> bool:
        return bool(self.listings)

    @cached_property
    def groups(self) -> frozenset[str]:
        """All groups that any node names."""
        return frozenset(node.group for listed in self.listings for node in listed.nodes.values())

    @cached_property
    def root(self) -> str:
        return self.listings[-1].listing.root if self.listings else MappingListing().root

    def at(self, at: Instant | None) -> Sequence[ListedMappings]:
        """The listing that counts for what was seen at this time: the nearest. Without times, all of them."""
        timed = [listed for listed in self.listings if listed.listing.at is not None]
        if at is None or not timed:
            return self.listings
        return [min(timed, key=lambda listed: abs((listed.listing.at or 0) - at))]

    def node(self, path: str, at: Instant | None) -> MappingNode | None:
        """The node as the listings that count have it; of several, the newest."""
        nodes = (listed.nodes[path] for listed in reversed(self.at(at)) if path in listed.nodes)
        return next(nodes, None)

    @cached_property
    def standing(self) -> dict[str, MappingNode]:
        """The nodes of the last listing."""
        return dict(self.listings[-1].nodes) if self.listings else {}

    def unchanged(self, node: MappingNode) -> int:
        """In how many listings in a row, the last one included, the node has this group and version."""
        count = 0
        for listed in reversed(self.listings):
            other = listed.nodes.get(node.path)
            if other is None or (other.group, other.version) != (node.group, node.version):
                break
            count += 1
        return count

    @property
    def vanished(self) -> Iterator[Vanished]:
        """Without those that went together with all others: then all consumers were closed."""
        for place, listed in enumerate(self.listings[1:], start=1):
            if not listed.nodes:
                continue
            later = set().union(*(other.nodes for other in self.listings[place:]))
            for path, node in self.listings[place - 1].nodes.items():
                if path not in later:
                    yield Vanished(node, listed)

    @property
    def overwritten(self) -> Iterator[Overwritten]:
        for place, listed in enumerate(self.listings[1:], start=1):
            for path, node in listed.nodes.items():
                before = self.listings[place - 1].nodes.get(path)
                if before is not None and before.group != node.group:
                    yield Overwritten(before, node)


def mapping_history(listings: Iterable[MappingListing], nodes: Iterable[MappingNode]) -> MappingHistory:
    """Both in order of time."""
    by_listing: dict[str, dict[str, MappingNode]] = {}
    for node in nodes:
        by_listing.setdefault(node.listing, {})[node.path] = node
    return MappingHistory(
        tuple(ListedMappings(listing, by_listing.get(listing.source, {})) for listing in listings)
    )
