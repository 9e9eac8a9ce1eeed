"""A group is away for longer than its offsets are kept.

That is seven days by default (offsets.retention.minutes). A commit of before Kafka 2.1 may name a time of its
own; the last one of this group names a second, as an old batch job might.
"""

import asyncio

from demo.clients import Reader
from demo.shop import DemoFailed, Shop, wait_until
from kelpie.client import SyncAdmin
from kelpie.client.address import Address
from kelpie.client.opening import open_connection
from kelpie.client.settings import Settings
from kelpie.observations import Committed
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

_KEPT_MS = 1000
_WITH_RETENTION = 4
"""The last version of OffsetCommit that carries the time for which offsets are kept."""


def cause(shop: Shop, reader: Reader) -> str:
    reader.stop()
    shop.cluster.wait_for_group(reader.group, "Empty")
    with SyncAdmin(shop.bootstrap) as admin:
        rows = list(admin.committed([reader.group]))
        asyncio.run(_commit_for_a_while(shop, reader.group, rows))
        wait_until("the offsets have expired", lambda: not admin.committed([reader.group]))
    return (
        f"Expired offsets: {reader.group} read {reader.read} records and ended. Its offsets were kept for "
        f"{_KEPT_MS / 1000:g} s, as its last commit asked (the default is seven days), and are gone."
    )


async def _commit_for_a_while(shop: Shop, group: str, rows: list[Committed]) -> None:
    """What it has committed, once more, and to be kept for a moment only."""
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=row.partition, committed_offset=row.offset, committed_metadata=""
        )
        for row in rows
    ]
    topics = [OffsetCommitRequestTopic(name=rows[0].topic, partitions=partitions)]
    request = OffsetCommitRequest(group_id=group, retention_time_ms=_KEPT_MS, topics=topics)
    settings = Settings((Address.parse(shop.address_of(shop.home_of(group)["leader"])),), "archive-job")
    async with await open_connection(settings.bootstrap[0], settings) as coordinator:
        answer = await coordinator.ask(request, _WITH_RETENTION)
    refused = [row.error_code for row in answer.topics[0].partitions if row.error_code]
    if refused:
        raise DemoFailed(f"The commit of {group} was refused with error {refused[0]}.")
