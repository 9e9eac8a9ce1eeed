"""Committed offsets, from the coordinators.

Since 3.0 one request carries many groups (KIP-709). Before, there is one request for each group, and many of
them are under way at once. Kafka 0.9 and 0.10.0 must be told which partitions are meant: those of the topics
that a group's members read, or of all topics where the group has no members.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from kelpie.client.admin.asking import Asking, chunks, each, error_of
from kelpie.model.time import Instant
from kelpie.observations import Committed, CoordinatorAnswer
from kelpie.observations.group_offsets import GroupOffsets
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

_SEVERAL_GROUPS = 8
_NAMES = 9
"""From version 10 on, topics go by ids."""
ALL_TOPICS = 2
"""From this version on, a group's offsets can be asked for without naming partitions."""
_STABLE = 7
_UNKNOWN = -1
_UNDER_WAY = 64
_index, _offset = attrgetter("partition_index"), attrgetter("committed_offset")
_epoch, _error = attrgetter("committed_leader_epoch"), attrgetter("error_code")

Partitions = Mapping[str, Sequence[int]]


async def fetch_offsets(
    asking: Asking,
    node: int,
    groups: Sequence[str],
    named: Mapping[str, Partitions] | None = None,
    *,
    only_named: bool = False,
    require_stable: bool = True,
) -> None:
    """Adds the committed offsets of each group, and what the coordinator answered as a whole.

    `named`: the partitions to ask for, by group, where `needs_names`; with `only_named` everywhere.
    `require_stable`: an offset that an open transaction is about to change is an error, not an offset.
    """
    source = asking.source(node)
    why = f"{source} did not tell its offsets."
    version = _UNKNOWN
    with asking.noting("group", groups, source, why):
        version = asking.versions[node].pick(OffsetFetchRequest, at_most=_NAMES)
    if version == _UNKNOWN:
        return

    def topics_of(group: str) -> list[OffsetFetchRequestTopics] | None:
        if version >= ALL_TOPICS and not only_named:
            return None
        return [
            OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))
            for topic, partitions in (named or {}).get(group, {}).items()
        ]

    async def fetch_many(part: Sequence[str]) -> None:
        wanted = [OffsetFetchRequestGroup(group_id=group, topics=topics_of(group)) for group in part]
        request = OffsetFetchRequest(groups=wanted, require_stable=require_stable)
        with asking.noting("group", part, source, why):
            response, at = await asking.ask(node, request, version)
            told = asking.answered(part, response.groups, attrgetter("group_id"), source, why)
            answers = [(group.group_id, group.error_code, group.topics) for group in told]
            _note(asking, node, answers, at)

    async def fetch_one(group: str) -> None:
        stable = require_stable and version >= _STABLE
        request = OffsetFetchRequest(group_id=group, topics=topics_of(group), require_stable=stable)
        with asking.noting("group", [group], source, why):
            response, at = await asking.ask(node, request, version)
            code = response.error_code if version >= ALL_TOPICS else _common_error(response.topics)
            _note(asking, node, [(group, code, response.topics)], at)

    if version >= _SEVERAL_GROUPS:
        await each(chunks(groups, asking.groups_per_request), fetch_many)
    else:
        await each(groups, fetch_one, _UNDER_WAY)


def needs_names(asking: Asking, node: int) -> bool:
    return not asking.versions[node].speaks(OffsetFetchRequest, at_least=ALL_TOPICS)


def _common_error(topics: Iterable[Any]) -> int:
    """Before version 2 an error of the group stands at every partition."""
    codes = {partition.error_code for topic in topics for partition in topic.partitions}
    return codes.pop() if len(codes) == 1 else 0


def _note(asking: Asking, node: int, answers: Sequence[tuple[str, int, Any]], at: Instant) -> None:
    """There may be 100,000s of offsets. No Python function is called for each of them."""
    source = asking.source(node)
    asking.seen.answers += [
        CoordinatorAnswer(group, "OffsetFetch", error_of(code), node, at=at, source=source)
        for group, code, _ in answers
    ]
    if asking.by_group:
        answers = [
            (group, code, topics)
            for group, code, topics in answers
            if not _note_group(asking, group, topics, at, source)
        ]
    new = tuple.__new__
    asking.seen.committed += [
        new(
            Committed,
            (
                group,
                topic.name,
                partition.partition_index,
                partition.committed_offset,
                partition.error_code,
                partition.committed_leader_epoch,
                partition.metadata or "",
                at,
                source,
            ),
        )
        for group, _, topics in answers
        for topic in topics
        for partition in topic.partitions
        if partition.committed_offset >= 0 or partition.error_code
    ]


def _note_group(asking: Asking, group: str, topics: Any, at: Instant, source: str) -> bool:
    """One row for all offsets. False: not each partition has one."""
    rows = [partition for topic in topics for partition in topic.partitions]
    offsets = tuple(map(_offset, rows))
    if not rows or min(offsets) < 0 or any(map(_error, rows)):
        return False
    places = tuple((topic.name, index) for topic in topics for index in map(_index, topic.partitions))
    epochs = tuple(map(_epoch, rows))
    metadata = tuple(row.metadata or "" for row in rows)
    names = asking.names.several(places)
    asking.seen.group_offsets.append(GroupOffsets(group, names, offsets, epochs, metadata, at, source))
    return True
