"""The first round: every broker is asked how it sees the cluster, and which groups it coordinates."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from kelpie.client.address import Address
from kelpie.client.admin.asking import AT_ONCE, Asking, TimedAnswer, each, error_of, together
from kelpie.client.admin.topics import ask_offsets_topic
from kelpie.client.certificates import own_certificates, shown_certificates
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import MOST_BROKERS, AnnouncedBroker
from kelpie.client.versions import BrokerVersions
from kelpie.observations import BrokerView, Listing, PartitionView
from kelpie.wire.api.list_groups import ListedGroup, ListGroupsRequest
from kelpie.wire.api.metadata import MetadataResponse

Listed = dict[int, list[ListedGroup]]
"""By broker: the groups that it lists."""
_MOST_ROUNDS = 4
"""A broker that only a cut-off broker knows is met in the second round, or in the third."""
_METADATA, _FIND_COORDINATOR, _CONSUMER_GROUP_DESCRIBE = 3, 10, 69
_RELEASES = [
    "",
    "0.10.0",
    "0.10.1",
    "0.10.2",
    "0.11",
    "1.x",
    "2.0",
    "2.1",
    "2.3",
    "2.4",
    "2.8",
    "2.8",
    "3.1",
]
"""By the newest version of Metadata."""


async def meet_all(asking: Asking) -> Listed:
    """Asks all brokers that the cluster lists, and those that one of them lists besides.

    A broker that is cut off from the others is not listed. If its address is among the bootstrap addresses,
    it is asked all the same, and says itself who it is.
    """
    listed: Listed = {}
    metadata: dict[int, MetadataResponse] = {}
    met: set[AnnouncedBroker] = set()
    for introduction in asking.nodes.introduced():
        _learn(asking, introduction.metadata)

    async def meet(broker: AnnouncedBroker) -> None:
        await _meet(asking, broker.node_id, metadata, listed)

    new = list(asking.nodes.brokers.values())
    for _ in range(_MOST_ROUNDS):
        met.update(new)
        await each(new, meet, AT_ONCE)
        for response in metadata.values():
            _learn(asking, response)
        new = [broker for broker in asking.nodes.brokers.values() if broker not in met]
        if not new:
            break
    _leave_out(asking, new)
    _doubtful(asking, metadata)
    asking.seen.certificates += own_certificates(asking.nodes.settings.security, asking.clock())
    return listed


def _leave_out(asking: Asking, unmet: Sequence[AnnouncedBroker]) -> None:
    """Says which brokers were not asked: there are too many, or brokers name new ones for ever."""
    for broker in unmet:
        failure = ClientError(
            f"{broker.address} was not asked: after {_MOST_ROUNDS} rounds, brokers still name others, or new "
            "addresses.",
            broker.address,
        )
        asking.missing(broker.node_id, failure)
        asking.unasked("broker", [broker.node_id], failure.reason, asking.source(broker.node_id))
    left_out = len(asking.nodes.left_out)
    if left_out:
        reason = f"Brokers name {left_out} more brokers than the {MOST_BROKERS} that Kelpie asks."
        asking.unasked("broker", [f"{left_out} others"], reason)


async def meet_again(asking: Asking) -> list[PartitionView]:
    """Asks the brokers again how they see the offsets topic, and which brokers they list.

    What a broker said that does not answer any more is no longer counted. Returns the new views.
    """
    metadata: dict[int, MetadataResponse] = {}
    gone: dict[int, ClientError] = {}
    first = len(asking.seen.partitions)

    async def again(node: int) -> None:
        try:
            metadata[node] = await ask_offsets_topic(asking, node)
        except ClientError as error:
            gone[node] = error

    await together(*map(again, asking.reached))
    views = asking.seen.partitions[first:]
    if not metadata:
        return views
    brokers, partitions = asking.seen.brokers, asking.seen.partitions
    asking.seen.brokers = [row for row in brokers if row.alive is not None and row.node_id not in gone]
    asking.seen.partitions = [row for row in partitions if row.told_by not in gone]
    for node, error in gone.items():
        asking.missing(node, error)
        asking.seen.brokers.append(_broker_row(asking, node, failure=error))
        asking.unasked("broker", [node], error.reason, asking.source(node))
    _doubtful(asking, metadata)
    return views


def _learn(asking: Asking, metadata: MetadataResponse) -> None:
    """Takes in new brokers, and new addresses of brokers that did not answer at the old one."""
    for broker in metadata.brokers:
        announced = AnnouncedBroker(broker.node_id, Address(broker.host, broker.port), broker.rack)
        known = asking.nodes.announce(announced)
        if known is None:
            continue
        if known.address != announced.address and broker.node_id not in asking.versions:
            asking.nodes.brokers[broker.node_id] = announced
            asking.moved(broker.node_id)


async def _meet(asking: Asking, node: int, metadata: dict[int, MetadataResponse], listed: Listed) -> None:
    try:
        connection = await asking.connect(node)
        metadata[node], listing = await asyncio.gather(
            ask_offsets_topic(asking, node), _listing(asking, node)
        )
    except ClientError as error:
        asking.missing(node, error)
        asking.seen.brokers.append(_broker_row(asking, node, failure=error))
        asking.unasked("broker", [node], error.reason, asking.source(node))
        return
    source = asking.source(node)
    if connection.certificate is not None:
        context = asking.nodes.memory.tls if _own_trust(asking) else None
        trusted = context.get_ca_certs() if context is not None else ()
        asking.seen.certificates += shown_certificates(
            connection.certificate, trusted, node, asking.clock(), source
        )
    row = _broker_row(asking, node, release=_release_of(connection.versions))
    cluster_id, controller = metadata[node].cluster_id or "", metadata[node].controller_id
    asking.seen.brokers.append(replace(row, cluster_id=cluster_id, controller=controller))
    if isinstance(listing, ClientError):
        asking.unasked("broker", [node], f"Its groups could not be listed. {listing.reason}", source)
    else:
        groups = tuple(group.group_id for group in listing[0].groups)
        code = error_of(listing[0].error_code)
        asking.seen.listings.append(Listing(node, groups, code, listing[1], source))
        listed[node] = listing[0].groups


def _own_trust(asking: Asking) -> bool:
    """Whether a trust store was given: what the operating system trusts is not looked at."""
    tls = asking.nodes.settings.security.tls
    return tls is not None and tls.authorities is not None


async def _listing(asking: Asking, node: int) -> TimedAnswer | ClientError:
    try:
        return await asking.ask(node, ListGroupsRequest())
    except ClientError as error:
        return error


def _broker_row(
    asking: Asking, node: int, *, failure: ClientError | None = None, release: str = ""
) -> BrokerView:
    """`failure`: why the broker could not be reached."""
    broker = asking.nodes.brokers[node]
    at, source = asking.clock(), asking.source(node)
    reason, trouble = (failure.reason, failure.trouble.value) if failure is not None else ("", "")
    return BrokerView(node, *broker.address, broker.rack, not reason, reason, release, at, source, trouble)


def _release_of(versions: BrokerVersions) -> str:
    """The first release that speaks these versions ("2.8"; "4.x" from 4.0 on): no API tells the release."""
    if not versions.told:
        return "0.9"
    newest = {key: last for key, (_, last) in versions.ranges.items()}
    metadata = newest.get(_METADATA, 0)
    if metadata >= 13:
        return "4.x"
    lookup = newest.get(_FIND_COORDINATOR, 0)
    if lookup >= 5:
        return "3.9" if lookup >= 6 else "3.8"
    if _CONSUMER_GROUP_DESCRIBE in newest:
        return "3.7"
    if lookup == 4 and metadata < 12:
        return "3.0"
    return _RELEASES[metadata]


def _doubtful(asking: Asking, metadata: dict[int, MetadataResponse]) -> None:
    """Adds a row for each unreachable broker that another broker still lists: it may be alive."""
    at = asking.clock()
    for node, response in metadata.items():
        source = asking.source(node)
        asking.seen.brokers += [
            BrokerView(
                broker.node_id,
                broker.host,
                broker.port,
                broker.rack,
                None,
                f"{source} lists it",
                "",
                at,
                source,
            )
            for broker in response.brokers
            if broker.node_id not in asking.versions
        ]
