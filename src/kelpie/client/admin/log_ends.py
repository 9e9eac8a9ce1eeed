"""Where partitions begin and end, and which offset a time has: from their leaders, thousands in one request.

A request carries one point in time for each partition. So the beginning, the high watermark, the last stable
offset and the newest timestamp take one request each, and so does each time in the past: the first record
that is younger than a minute tells where the log ended a minute ago. All of them are under way at once.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kelpie.client.admin.asking import Asking, chunks, each, together
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode, describe
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant, plausible
from kelpie.observations import LogEnds
from kelpie.observations.positions import BY_TIMESTAMPS, NO_OFFSET
from kelpie.questions.list_offsets import EARLIEST, LATEST, NEWEST_TIMESTAMP, AskOffsets
from kelpie.questions.question import CONSUMER
from kelpie.wire.api.list_offsets import ListOffsetsPartitionResponse, ListOffsetsRequest

_TIMES, _ISOLATION, _KNOWS_NEWEST = 1, 2, 7
"""The versions that brought them."""
_READ_COMMITTED = 1

Responses = Mapping[tuple[str, int], ListOffsetsPartitionResponse]
_Point = tuple[int, int]
"""A timestamp, and the isolation level."""


@dataclass(frozen=True, slots=True)
class OffsetAt:
    """The offset at a time; NO_OFFSET if there is none, with the failure if there was one."""

    offset: int = NO_OFFSET
    failure: str = ""
    coarse: bool = False
    """Kafka 0.9: the start of a segment that was last written before the time; NO_OFFSET if all are newer."""


async def ask_ends(
    asking: Asking,
    by_leader: Mapping[int, Sequence[TopicPartition]],
    look_back_s: Sequence[int] = (),
    tiered: Collection[str] = (),
) -> None:
    """Adds the ends of all partitions, and where they were so many seconds ago.

    `tiered`: topics whose old segments are in a remote store. To find a time there blocks a broker's request
    handler, so the past of their partitions is not asked for.
    """

    async def ask_leader(node: int, names: Sequence[TopicPartition]) -> None:
        source = asking.source(node)
        why = f"{source}, which leads it, did not tell its ends."

        async def ask(part: Sequence[TopicPartition]) -> None:
            with asking.noting("partition", part, source, why):
                await _ask(asking, node, part, look_back_s, tiered)

        await each(chunks(names, asking.partitions_per_request), ask)

    await together(*(ask_leader(node, names) for node, names in by_leader.items()))


async def ask_offsets_at(
    nodes: Nodes, node: int, times: Mapping[TopicPartition, int], replica_id: int = CONSUMER
) -> dict[TopicPartition, OffsetAt]:
    """The first offset at or after each time, or EARLIEST or LATEST, from one broker."""
    question = AskOffsets(0, {name: (times[name], None) for name in sorted(times)}, replica_id=replica_id)
    try:
        version = (await nodes.versions(node)).pick(ListOffsetsRequest)
        response = await nodes.ask(node, question.request(version), version)
    except ClientError as error:
        return dict.fromkeys(times, OffsetAt(failure=error.reason))
    offsets = {
        TopicPartition(topic.name, row.partition_index): _offset_at(topic.name, row, version)
        for topic in response.topics
        for row in topic.partitions
    }
    unanswered = OffsetAt(failure=f"{nodes.name_of(node)} did not answer for it.")
    return {name: offsets.get(name, unanswered) for name in times}


def _offset_at(topic: str, row: ListOffsetsPartitionResponse, version: int) -> OffsetAt:
    if row.error_code != ErrorCode.NONE:
        return OffsetAt(failure=f"{TopicPartition(topic, row.partition_index)}: {describe(row.error_code)}")
    return OffsetAt(_offset(row), coarse=version < _TIMES)


async def _ask(
    asking: Asking,
    node: int,
    names: Sequence[TopicPartition],
    look_back_s: Sequence[int],
    tiered: Collection[str],
) -> None:
    version = asking.versions[node].pick(ListOffsetsRequest)
    points: dict[str | Instant, _Point] = {"earliest": (EARLIEST, 0), "latest": (LATEST, 0)}
    if version >= _ISOLATION:
        points["stable"] = (LATEST, _READ_COMMITTED)
    if version >= _KNOWS_NEWEST:
        points["newest"] = (NEWEST_TIMESTAMP, 0)
    now = asking.clock()
    local = [name for name in names if name.topic not in tiered]
    past = [now - 1000 * back for back in look_back_s] if local and version >= _TIMES else []
    points |= {then: (then, 0) for then in past}
    responses: dict[str | Instant, Responses] = {}

    async def fetch(what: str | Instant, timestamp: int, isolation_level: int) -> None:
        wanted = dict.fromkeys(local if timestamp >= 0 else names, (timestamp, None))
        timeout_ms = int(asking.nodes.settings.request_timeout_s * 1000)
        request = AskOffsets(isolation_level, wanted, timeout_ms).request(version)
        response, _ = await asking.ask(node, request, version)
        responses[what] = {
            (topic.name, partition.partition_index): partition
            for topic in response.topics
            for partition in topic.partitions
        }

    await together(*(fetch(what, *point) for what, point in points.items()))
    source = asking.source(node)
    asking.seen.ends += _past_ends(names, responses, past, source)
    asking.seen.ends += _ends(names, responses, asking.clock(), source)


def _ends(
    names: Iterable[TopicPartition],
    responses: Mapping[str | Instant, Responses],
    at: Instant,
    source: str,
) -> list[LogEnds]:
    rows = []
    nothing: Responses = {}
    for name in names:
        latest = responses["latest"].get(name)
        if latest is None:
            continue
        earliest = responses["earliest"].get(name)
        stable = responses["stable"].get(name) if "stable" in responses else latest
        newest = responses.get("newest", nothing).get(name)
        answers = (latest, earliest, stable)
        errors = (answer.error_code for answer in answers if answer is not None and answer.error_code)
        rows.append(
            LogEnds(
                *name,
                _offset(earliest),
                _offset(latest),
                _offset(stable),
                next(errors, 0),
                latest.leader_epoch,
                plausible(newest.timestamp) if newest is not None else None,
                at,
                source,
            )
        )
    return rows


def _past_ends(
    names: Iterable[TopicPartition],
    responses: Mapping[str | Instant, Responses],
    past: Iterable[Instant],
    source: str,
) -> list[LogEnds]:
    rows = []
    by_timestamps = f"{source} by timestamps"
    assert by_timestamps.endswith(BY_TIMESTAMPS)
    for then in sorted(past):
        for name in names:
            entry, latest = responses[then].get(name), responses["latest"].get(name)
            if entry is None or latest is None or entry.error_code or latest.error_code:
                continue
            # Without a younger record, the log ended then where it ends now.
            end = entry.offset if entry.offset >= 0 else latest.offset
            epoch = entry.leader_epoch
            rows.append(LogEnds(*name, NO_OFFSET, end, NO_OFFSET, 0, epoch, None, then, by_timestamps))
    return rows


def _offset(entry: Any) -> int:
    if entry is None or entry.error_code:
        return NO_OFFSET
    offset: int = entry.old_style_offsets[0] if entry.old_style_offsets else entry.offset
    return offset
