"""Committed offsets, from the coordinators.

Since 3.0 many groups go into one request (KIP-709). Before, there is one request for each group, and many of
them under way at once. Kafka 0.9 and 0.10.0 must be told which partitions are meant: those of the topics that
a group's members read, or of all topics where nobody is there to tell.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kelpie.client.failures import ClientError
from kelpie.client.survey.asking import Asking, chunks, each, error_of
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.observations import Committed, CoordinatorAnswer
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic

_SEVERAL_GROUPS = 8
_NAMES = 9
"""From version 10 on, topics go by ids."""
ALL_TOPICS = 2
"""From this version on, a group's offsets can be asked for without naming partitions."""
_STABLE = 7
_UNDER_WAY = 64

Partitions = Mapping[str, Sequence[int]]


async def fetch_offsets(
    asking: Asking, node: int, groups: Sequence[str], named: Mapping[str, Partitions] | None = None
) -> None:
    """Adds the committed offsets of each group, and what the coordinator answered as a whole.

    `named`: the partitions to ask for, where `needs_names`.
    """
    version = asking.versions[node].pick(OffsetFetchRequest, at_most=_NAMES)
    if version >= _SEVERAL_GROUPS:
        await _fetch_together(asking, node, groups, version)
        return

    async def fetch(group: str) -> None:
        topics = None
        if version < ALL_TOPICS:
            wanted = (named or {}).get(group, {})
            topics = [
                OffsetFetchRequestTopic(name=topic, partition_indexes=list(partitions))
                for topic, partitions in wanted.items()
            ]
        request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=version >= _STABLE)
        try:
            response, at = await asking.ask(node, request, version)
        except ClientError as error:
            _not_fetched(asking, node, [group], error)
            return
        code = response.error_code if version >= ALL_TOPICS else _common_error(response.topics)
        _note_groups(asking, node, [(group, code)], at)
        _note_offsets(asking, node, [(group, response.topics)], at)

    await each(groups, fetch, _UNDER_WAY)


def needs_names(asking: Asking, node: int) -> bool:
    return not asking.versions[node].speaks(OffsetFetchRequest, at_least=ALL_TOPICS)


async def _fetch_together(asking: Asking, node: int, groups: Sequence[str], version: int) -> None:
    async def fetch(part: Sequence[str]) -> None:
        wanted = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in part]
        try:
            response, at = await asking.ask(
                node, OffsetFetchRequest(groups=wanted, require_stable=True), version
            )
        except ClientError as error:
            _not_fetched(asking, node, part, error)
            return
        _note_groups(asking, node, [(group.group_id, group.error_code) for group in response.groups], at)
        _note_offsets(asking, node, [(group.group_id, group.topics) for group in response.groups], at)

    await each(chunks(groups, asking.options.groups_per_request), fetch)


def _common_error(topics: Iterable[Any]) -> int:
    """Before version 2 an error of the group stands at every partition."""
    codes = {partition.error_code for topic in topics for partition in topic.partitions}
    return codes.pop() if len(codes) == 1 else 0


def _note_groups(asking: Asking, node: int, answers: Iterable[tuple[str, int]], at: Instant) -> None:
    source = asking.source(node)
    asking.seen.answers += [
        CoordinatorAnswer(
            group,
            "OffsetFetch",
            error_of(code) if code else ErrorCode.NONE,
            node,
            at=at,
            source=source,
        )
        for group, code in answers
    ]


def _note_offsets(asking: Asking, node: int, answers: Iterable[tuple[str, Any]], at: Instant) -> None:
    """Hundreds of thousands of rows: tuples made without a call of ours for each."""
    source = asking.source(node)
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
        for group, topics in answers
        for topic in topics
        for partition in topic.partitions
        if partition.committed_offset >= 0 or partition.error_code
    ]


def _not_fetched(asking: Asking, node: int, groups: Sequence[str], error: ClientError) -> None:
    source = asking.source(node)
    asking.unasked("group", groups, f"{source} did not tell its offsets. {error.reason}", source)
