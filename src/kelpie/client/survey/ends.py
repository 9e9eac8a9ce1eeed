"""Where partitions begin and end, from their leaders, thousands in one request.

A request carries one point in time for each partition, so there is one for the beginning, the high watermark,
the last stable offset and the newest timestamp each, and one for each look back: the first record that is
younger than a minute tells where the log ended a minute ago. All are under way at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kelpie.client.failures import ClientError
from kelpie.client.survey.asking import Asking, chunks, each, together
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import LogEnds
from kelpie.observations.positions import NO_OFFSET
from kelpie.wire.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

_LATEST, _EARLIEST, _NEWEST_TIMESTAMP = -1, -2, -3
_TIMES, _ISOLATION, _KNOWS_NEWEST = 1, 2, 7
"""The versions that brought them."""
_READ_COMMITTED = 1

Found = Mapping[tuple[str, int], ListOffsetsPartitionResponse]


class _Point(NamedTuple):
    timestamp: int
    isolation: int = 0


async def ask_ends(asking: Asking, by_leader: Mapping[int, Sequence[TopicPartition]]) -> None:
    """Adds the ends of all partitions, and where they were some time ago."""
    await together(*(_ask_leader(asking, node, names) for node, names in by_leader.items()))


async def _ask_leader(asking: Asking, node: int, names: Sequence[TopicPartition]) -> None:
    async def ask(part: Sequence[TopicPartition]) -> None:
        try:
            await _ask(asking, node, part)
        except ClientError as error:
            source = asking.source(node)
            reason = f"{source}, which leads it, did not tell its ends. {error.reason}"
            asking.unasked("partition", [str(name) for name in part], reason, source)

    await each(chunks(names, asking.options.partitions_per_request), ask)


async def _ask(asking: Asking, node: int, names: Sequence[TopicPartition]) -> None:
    version = asking.versions[node].pick(ListOffsetsRequest)
    now = asking.clock()
    points = {"earliest": _Point(_EARLIEST), "latest": _Point(_LATEST)}
    if version >= _ISOLATION:
        points["stable"] = _Point(_LATEST, _READ_COMMITTED)
    if version >= _KNOWS_NEWEST:
        points["newest"] = _Point(_NEWEST_TIMESTAMP)
    past = {now - 1000 * back: _Point(now - 1000 * back) for back in asking.options.look_back_s}
    if version < _TIMES:
        past = {}
    found: dict[str | Instant, Found] = {}

    async def fetch(what: str | Instant, point: _Point) -> None:
        timeout_ms = int(asking.nodes.settings.request_timeout_s * 1000)
        request = _request(names, point, timeout_ms)
        response, _ = await asking.ask(node, request, version)
        found[what] = {
            (topic.name, partition.partition_index): partition
            for topic in response.topics
            for partition in topic.partitions
        }

    await together(*(fetch(what, point) for what, point in (points | past).items()))
    source = asking.source(node)
    asking.seen.ends += _past_ends(names, found, past, source)
    asking.seen.ends += _ends(names, found, version, asking.clock(), source)


def _request(names: Iterable[TopicPartition], point: _Point, timeout_ms: int) -> ListOffsetsRequest:
    topics: defaultdict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for topic, partition in names:
        topics[topic].append(ListOffsetsPartition(partition_index=partition, timestamp=point.timestamp))
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=point.isolation,
        topics=[ListOffsetsTopic(name=topic, partitions=entries) for topic, entries in topics.items()],
        timeout_ms=timeout_ms,
    )


def _ends(
    names: Iterable[TopicPartition],
    found: Mapping[str | Instant, Found],
    version: int,
    at: Instant,
    source: str,
) -> list[LogEnds]:
    rows = []
    for name in names:
        latest = found["latest"].get(name)
        if latest is None:
            continue
        earliest = found["earliest"].get(name)
        stable = found["stable"].get(name) if version >= _ISOLATION else latest
        newest = found["newest"].get(name) if version >= _KNOWS_NEWEST else None
        error = next(
            (it.error_code for it in (latest, earliest, stable) if it is not None and it.error_code), 0
        )
        rows.append(
            LogEnds(
                *name,
                _offset(earliest),
                _offset(latest),
                _offset(stable),
                error,
                latest.leader_epoch,
                newest.timestamp if newest is not None and newest.timestamp >= 0 else None,
                at,
                source,
            )
        )
    return rows


def _past_ends(
    names: Iterable[TopicPartition],
    found: Mapping[str | Instant, Found],
    past: Iterable[Instant],
    source: str,
) -> list[LogEnds]:
    rows = []
    said = f"{source} by timestamps"
    for then in sorted(past):
        for name in names:
            entry, latest = found[then].get(name), found["latest"].get(name)
            if entry is None or latest is None or entry.error_code or latest.error_code:
                continue
            # Nothing is younger: it ended then where it ends now.
            end = entry.offset if entry.offset >= 0 else latest.offset
            rows.append(LogEnds(*name, NO_OFFSET, end, NO_OFFSET, 0, entry.leader_epoch, None, then, said))
    return rows


def _offset(entry: Any) -> int:
    if entry is None or entry.error_code:
        return NO_OFFSET
    offset: int = entry.old_style_offsets[0] if entry.old_style_offsets else entry.offset
    return offset
