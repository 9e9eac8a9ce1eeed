"""The first round: every broker is asked how it sees the cluster, and which groups it coordinates.

The offsets topic is asked for by name where that cannot create it. Up to 2.0 brokers create it whenever a
client asks for it, so there all topics are asked for instead (the answer then serves for the other topics
too).
"""

import asyncio
from dataclasses import dataclass, field

from kelpie.client.address import Address
from kelpie.client.connection import Connection
from kelpie.client.failures import ClientError, TimedOut
from kelpie.client.nodes import Broker as Announced
from kelpie.client.survey.asking import Answer, Asking, error_of, together
from kelpie.client.survey.releases import release_of
from kelpie.client.survey.topics import views_of
from kelpie.errors import ErrorCode, describe
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, Broker, Listing, PartitionView
from kelpie.observations.cluster import NO_LEADER
from kelpie.wire.api.list_groups import ListedGroup, ListGroupsRequest
from kelpie.wire.api.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

ASKS_BY_NAME = 7
"""The first version of Metadata that only brokers speak which do not create the offsets topic for it."""
_CAN_FORBID_CREATION = 4


@dataclass(slots=True)
class FirstRound:
    """What brokers said of themselves, by node id."""

    metadata: dict[int, MetadataResponse] = field(default_factory=dict)
    listed: dict[int, list[ListedGroup]] = field(default_factory=dict)
    all_topics: dict[int, dict[str, MetadataResponseTopic]] = field(default_factory=dict)
    """Of brokers that had to be asked for all topics."""


async def meet_all(asking: Asking) -> FirstRound:
    """Asks all brokers that the cluster lists, and those that one of them lists besides.

    A broker that is cut off from the others is not listed. If its address is among the bootstrap addresses,
    it is asked all the same, and says itself who it is.
    """
    first = FirstRound()
    met: set[Announced] = set()
    for introduction in asking.nodes.introduced():
        _learn(asking, introduction.metadata)
    while True:
        new = [broker for broker in asking.nodes.brokers.values() if broker not in met]
        if not new:
            break
        met.update(new)
        await together(*(_meet(asking, first, broker.node_id) for broker in new))
        for response in first.metadata.values():
            _learn(asking, response)
    _doubtful(asking, first)
    return first


def _learn(asking: Asking, metadata: MetadataResponse) -> None:
    """Takes in brokers that are new, and new addresses of those that were not found at the old one."""
    for broker in metadata.brokers:
        announced = Announced(broker.node_id, Address(broker.host, broker.port), broker.rack)
        known = asking.nodes.brokers.setdefault(broker.node_id, announced)
        if known.address != announced.address and broker.node_id not in asking.versions:
            asking.nodes.brokers[broker.node_id] = announced
            asking.found_again(broker.node_id)


async def _meet(asking: Asking, first: FirstRound, node: int) -> None:
    try:
        connection = await _connected(asking, node)
        version = connection.versions.pick(MetadataRequest)
        by_name = version >= ASKS_BY_NAME
        (response, at), listing = await asyncio.gather(
            asking.ask(node, _metadata(version, by_name=by_name), version), _listing(asking, node)
        )
    except ClientError as error:
        _missing(asking, node, error)
        return
    asking.versions[node] = connection.versions
    first.metadata[node] = response
    if not by_name:
        first.all_topics[node] = {topic.name or "": topic for topic in response.topics}
    source = asking.source(node)
    own = asking.nodes.brokers[node]
    release = release_of(connection.versions)
    asking.seen.brokers.append(
        Broker(node, own.address.host, own.address.port, own.rack, True, "", release, at, source)
    )
    _note_offsets_topic(asking, node, response, at)
    if isinstance(listing, ClientError):
        asking.unasked("broker", [str(node)], f"Its groups could not be listed. {listing.reason}", source)
    else:
        groups = tuple(group.group_id for group in listing[0].groups)
        code = error_of(listing[0].error_code)
        asking.seen.listings.append(Listing(node, groups, code, listing[1], source))
        first.listed[node] = listing[0].groups


async def _connected(asking: Asking, node: int) -> Connection:
    limit_s = asking.nodes.settings.request_timeout_s
    try:
        async with asyncio.timeout(limit_s):
            return await asking.nodes.connection(node)
    except TimeoutError:
        address = asking.nodes.brokers[node].address
        raise TimedOut(f"{address} was not ready within {limit_s:g} s.", address) from None


def _metadata(version: int, *, by_name: bool) -> MetadataRequest:
    """By name: the offsets topic. Otherwise all topics, which version 0 spells differently."""
    if by_name:
        topics: list[MetadataRequestTopic] | None = [MetadataRequestTopic(name=OFFSETS_TOPIC)]
    else:
        topics = [] if version == 0 else None
    return MetadataRequest(topics=topics, allow_auto_topic_creation=version < _CAN_FORBID_CREATION)


async def _listing(asking: Asking, node: int) -> Answer | ClientError:
    try:
        return await asking.ask(node, ListGroupsRequest())
    except ClientError as error:
        return error


def _note_offsets_topic(asking: Asking, node: int, metadata: MetadataResponse, at: Instant) -> None:
    source = asking.source(node)
    topic = next((topic for topic in metadata.topics if topic.name == OFFSETS_TOPIC), None)
    if topic is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        missing = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        asking.seen.partitions.append(
            PartitionView(OFFSETS_TOPIC, -1, NO_LEADER, (), (), missing, told_by=node, at=at, source=source)
        )
    elif topic.error_code:
        asking.unasked("topic", [OFFSETS_TOPIC], f"{source} answers {describe(topic.error_code)}", source)
    else:
        asking.seen.partitions += views_of(topic, node, at, source)


def _missing(asking: Asking, node: int, error: ClientError) -> None:
    asking.missing(node, error)
    source = asking.source(node)
    own = asking.nodes.brokers[node]
    asking.seen.brokers.append(
        Broker(
            node,
            own.address.host,
            own.address.port,
            own.rack,
            False,
            error.reason,
            "",
            asking.clock(),
            source,
        )
    )
    asking.unasked("broker", [str(node)], error.reason, source)


def _doubtful(asking: Asking, first: FirstRound) -> None:
    """A broker that cannot be reached from here, and that others list all the same, may be alive."""
    at = asking.clock()
    for teller, response in first.metadata.items():
        asking.seen.brokers += [
            Broker(
                broker.node_id,
                broker.host,
                broker.port,
                broker.rack,
                None,
                f"{asking.source(teller)} lists it",
                "",
                at,
                asking.source(teller),
            )
            for broker in response.brokers
            if broker.node_id not in asking.versions
        ]
