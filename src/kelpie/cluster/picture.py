"""From observations to a ClusterView: which brokers live, and what is known of each partition.

Of a partition the newest view of each witness counts. A broker that was asked is a witness; so are Kafka's
tools (kafka-topics and the like), all of them together as one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from kelpie.cluster.liveness import liveness
from kelpie.cluster.offsets_sizes import compacted_bytes, sizes_of
from kelpie.cluster.topics import of_present_topics, topics_of
from kelpie.cluster.view import ClusterView
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import (
    OFFSETS_TOPIC,
    BrokerView,
    Certificate,
    Listing,
    Observations,
    PartitionView,
    Setting,
)
from kelpie.observations.ordering import by_time, grouped

T = TypeVar("T")
_MOST_ADDRESSES = 3
_TIMED = attrgetter(
    *("brokers", "partitions", "topics", "listings", "answers", "states", "generations"),
    *("removals", "commits", "committed", "ends", "events", "unasked", "scrapes", "mapping_listings"),
    "zookeeper_groups",
)
"""The rows whose times count for the time of a picture."""
_REPLICAS_LEFT_OUT = {ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE}


def build_cluster(
    observations: Observations,
    *,
    now: Instant | None = None,
    bootstrap: str = "",
    zookeeper: str = "",
    all_groups: bool = False,
) -> ClusterView:
    """The picture of the cluster. Without `now`, it is the end of what was seen."""
    now = end_of(observations) if now is None else now
    newest, earlier = _views(observations.partitions)
    alive = liveness(observations, newest, now)
    if alive.ended_at is not None:
        now = min(now, alive.ended_at)
    settings = _settings(observations.settings)
    topics = topics_of(observations.topics, _by_partition(observations.ends), newest)
    count = _offsets_partitions(observations, newest, settings)
    sizes = sizes_of(observations.sizes)
    return ClusterView(
        now=now,
        brokers=alive.brokers,
        views=newest,
        earlier_views=earlier,
        outages=alive.outages,
        last_reached=alive.last_reached,
        offsets_topic_hidden=_hides_offsets_topic(observations, newest),
        offsets_partitions=count,
        sizes=sizes,
        compacted_bytes=compacted_bytes(observations, count, sizes),
        ends=_by_partition(of_present_topics(observations.ends, topics)),
        certificates=_newest_certificates(observations.certificates),
        known_topics=topics,
        transactions=_by_partition(observations.transactions),
        epoch_ends=_by_partition(observations.epoch_ends),
        settings=settings,
        events=by_time([event for event in observations.events if event.group is None]),
        scrapes=by_time(observations.scrapes),
        traffic=by_time(observations.traffic),
        malformed=by_time(observations.malformed),
        mapping_listings=by_time(observations.mapping_listings),
        mappings=by_time(observations.mappings),
        unasked=tuple(row for row in observations.unasked if row.kind != "group"),
        listing_complete=_listing_complete(newest_listings(observations.listings), alive.brokers),
        all_groups=all_groups,
        cluster_id=_said_by_most(row.cluster_id for row in alive.brokers.values() if row.alive) or "",
        controller=_said_by_most(
            row.controller for row in alive.brokers.values() if row.alive and row.controller >= 0
        ),
        bootstrap=bootstrap or _addresses(alive.brokers.values()),
        zookeeper=zookeeper,
    )


def _said_by_most(values: Iterable[T]) -> T | None:
    return next((value for value, _ in Counter(values).most_common(1)), None)


def _newest_certificates(rows: Iterable[Certificate]) -> tuple[Certificate, ...]:
    return tuple({(row.holder, row.node): row for row in by_time(list(rows))}.values())


def end_of(observations: Observations) -> Instant:
    """The newest time at which anything was seen; 0 when nothing has a time."""
    return max((row.at for rows in _TIMED(observations) for row in rows if row.at is not None), default=0)


def newest_listings(rows: Iterable[Listing]) -> dict[int | None, Listing]:
    """By broker; None: by a tool."""
    return {row.told_by: row for row in by_time(list(rows))}


def _addresses(brokers: Iterable[BrokerView]) -> str:
    """Those of living brokers: where to send commands when nobody gave an address."""
    living = [broker.address for broker in brokers if broker.alive and broker.address]
    return ",".join(living[:_MOST_ADDRESSES])


def _by_partition(rows: Iterable[Any]) -> dict[Any, tuple[Any, ...]]:
    return grouped(rows, lambda row: TopicPartition(row.topic, row.partition))


def _views(
    rows: Iterable[PartitionView],
) -> tuple[dict[TopicPartition, tuple[PartitionView, ...]], dict[TopicPartition, tuple[PartitionView, ...]]]:
    """The newest of each witness, and all others."""
    views_by_place: defaultdict[tuple[str, int], list[PartitionView]] = defaultdict(list)
    for row in rows:
        views_by_place[row.topic, row.partition].append(row)
    newest, earlier = {}, {}
    for place, views in views_by_place.items():
        if place[1] < 0:
            continue
        name = TopicPartition(*place)
        ordered = by_time(views)
        last = {view.told_by: view for view in ordered}
        newest[name] = tuple(_completed(view, ordered) for view in last.values())
        if len(last) < len(ordered):
            earlier[name] = tuple(view for view in ordered if last[view.told_by] is not view)
    return newest, earlier


def _completed(view: PartitionView, others: Sequence[PartitionView]) -> PartitionView:
    """The view with all replicas: Kafka 0.9 leaves dead ones out and only says that some are missing.

    An earlier or another view names them.
    """
    if view.error not in _REPLICAS_LEFT_OUT or view.leader_epoch >= 0 or view.told_by is None:
        return view
    fullest = max(others, key=lambda other: len(other.replicas))
    return view._replace(replicas=fullest.replicas) if len(fullest.replicas) > len(view.replicas) else view


def _settings(rows: Iterable[Setting]) -> dict[tuple[str, str], str]:
    """The setting of one broker stands for all brokers, unless there is one for all."""
    values = {(row.of, row.name): row.value for row in rows}
    for row in rows:
        if row.of.startswith("broker "):
            values.setdefault(("broker", row.name), row.value)
    return values


def _listing_complete(listings: Mapping[int | None, Listing], brokers: Mapping[int, BrokerView]) -> bool:
    answered = {node for node, listing in listings.items() if listing.error is ErrorCode.NONE}
    possible = {node for node, broker in brokers.items() if broker.alive is not False}
    return bool(possible) and possible <= answered


def _has_no_offsets_topic(
    observations: Observations, views: Mapping[TopicPartition, Sequence[PartitionView]]
) -> bool:
    """Whether brokers say that there is none."""
    return not any(name.topic == OFFSETS_TOPIC for name in views) and any(
        row.topic == OFFSETS_TOPIC and row.partition < 0 for row in observations.partitions
    )


def _hides_offsets_topic(
    observations: Observations, views: Mapping[TopicPartition, Sequence[PartitionView]]
) -> bool:
    """Without the topic no broker lists a group, and none describes one."""
    if not _has_no_offsets_topic(observations, views):
        return False
    listings = newest_listings(observations.listings).values()
    return any(listing.told_by is not None and listing.groups for listing in listings)


def _offsets_partitions(
    observations: Observations,
    views: Mapping[TopicPartition, Sequence[PartitionView]],
    settings: Mapping[tuple[str, str], str],
) -> int | None:
    """The first of these that is there: what brokers describe now; the first line of a tool's output; a
    whole output of a tool; a setting.

    An output counts only if it is whole: a part of it gives no more than a lower bound.
    """
    described = {name.partition: rows for name, rows in views.items() if name.topic == OFFSETS_TOPIC}
    by_brokers = {
        partition for partition, rows in described.items() if any(row.told_by is not None for row in rows)
    }
    if by_brokers and _is_whole(by_brokers):
        return len(by_brokers)
    first_line = settings.get((f"topic {OFFSETS_TOPIC}", "partitions"), "")
    if first_line.isdecimal() and int(first_line) > max(described, default=0):
        return int(first_line)
    if described and _is_whole(set(described)):
        return len(described)
    if _has_no_offsets_topic(observations, views) and not _hides_offsets_topic(observations, views):
        return 0
    value = settings.get(("broker", "offsets.topic.num.partitions"), "")
    return int(value) if value.isdecimal() and int(value) > max(described, default=0) else None


def _is_whole(partitions: set[int]) -> bool:
    return partitions == set(range(len(partitions)))
