"""From nodes of KoP's mapping tree to rows, whether they come from a file or from ZooKeeper itself."""

from collections.abc import Mapping
from typing import NamedTuple

from kelpie.attribution.addresses import KOP_ROOT, read_mapping_path, read_node_value
from kelpie.model.time import Instant
from kelpie.observations.collection import Observations
from kelpie.observations.mappings import MappingListing, MappingNode


class StoredValue(NamedTuple):
    """What a node holds, and its version; -1: unknown."""

    data: bytes
    version: int = -1
    line: int | None = None
    """Where it stands in a file."""


def mapping_rows(
    nodes: Mapping[str, StoredValue],
    source: str,
    at: Instant | None = None,
    *,
    root: str = KOP_ROOT,
    exists: bool = True,
    file: str = "",
) -> Observations:
    """The rows of one listing of the tree: the nodes below the root that name a group.

    Nodes without a value are no mappings: KoP makes them for a "/" in a client id. `file`: what nodes name as
    their source, with their line.
    """
    rows = Observations(mapping_listings=[MappingListing(root, exists, at, source)])
    for path, value in sorted(nodes.items()):
        if not path.startswith(f"{root}/") or not value.data:
            continue
        client = read_mapping_path(path, root)
        host, client_id = client if client is not None else ("", "")
        group = read_node_value(value.data)
        place = f"{file}:{value.line}" if value.line is not None else source
        rows.mappings.append(MappingNode(source, path, group, host, client_id, value.version, at, place))
        rows.known_groups.setdefault(group, f"nodes in {file or source}")
    return rows
