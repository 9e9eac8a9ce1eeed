"""Mappings that are left over when nothing moves any more."""

from kelpie.attribution.addresses import (
    KOP_ROOT,
    MEMBERS_ROOT,
    mapping_path,
    read_address_node,
    read_node_value,
)
from kelpie.attribution.members_tree import member_node, read_claims
from kelpie.attribution.simulation.cluster import SimulatedCluster


def leaked_mappings(cluster: SimulatedCluster) -> list[str]:
    """Paths of mappings that name a group and an address without a consumer."""
    consumers = [consumer for consumer in cluster.consumers if consumer.is_alive and consumer.group]
    clients = {(consumer.client, consumer.group) for consumer in consumers}
    paths = {(mapping_path(client), group) for client, group in clients}
    leaked = [
        path
        for path, value in cluster.store.listing(KOP_ROOT).items()
        if value and (path, read_node_value(value)) not in paths
    ]
    current = {
        (client_group, member_node(group.name, member_id, group.epoch))
        for group in cluster.groups.values()
        for member_id, member in group.members.items()
        if (client_group := (member.client, group.name)) in clients
    }
    for path, value in cluster.store.listing(MEMBERS_ROOT).items():
        address, _, name = path.rpartition("/")
        if not value:
            continue
        claims, client = read_claims({name: value}), read_address_node(address)
        leaked += [path for claim in claims.members.values() if ((client, claim.group), name) not in current]
        leaked += [path for hint in claims.hints.values() if (client, hint.group) not in clients]
    return leaked
