"""Offsets of groups, read from their coordinators and committed there as no member (`client.admin`).

Each failure is sorted into one that may pass and one that will not: `committing` tries the first kind again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TypeVar

from kelpie.client.admin.admin import Admin
from kelpie.client.admin.rounds import PASSING
from kelpie.client.admin.rows import Rows
from kelpie.client.client_errors import BadSettings, ClientError, NotAuthenticated, TlsFailed, Unsupported
from kelpie.client.settings import Settings
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.observations import Committed
from kelpie.questions.offset_commit import OffsetToCommit

Row = TypeVar("Row")

_OF_ONE_PARTITION = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.OFFSET_METADATA_TOO_LARGE,
}
_HAS_MEMBERS = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.FENCED_MEMBER_EPOCH,
}
_LASTING = (BadSettings, NotAuthenticated, TlsFailed, Unsupported)


class CommitDelayed(Exception):
    """It could not be done now; later it may."""


class CommitRefused(Exception):
    """It will not be done, however often one asks."""


class GroupOffsets:
    """The groups of one cluster. All methods raise CommitDelayed or CommitRefused, in words for a person."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin: Admin | None = None
        self._opening = asyncio.Lock()

    async def committed(
        self, group: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, Committed]:
        """What the group has committed in these partitions."""
        what = f"the offsets of group {group} cannot be read"
        rows = await self._asked(
            what, lambda admin: admin.committed([group], partitions, require_stable=False)
        )
        _check(what, (row.error for row in rows if row.error not in _OF_ONE_PARTITION))
        return {row.name: row for row in rows if row.offset >= 0}

    async def commit(
        self, group: str, offsets: Mapping[TopicPartition, int], metadata: str
    ) -> dict[TopicPartition, str]:
        """Commits all offsets; returns the partitions that the coordinator refuses, with the reason."""
        what = f"group {group} does not take the commit"
        to_commit = {name: OffsetToCommit(offset, metadata=metadata) for name, offset in offsets.items()}
        rows = await self._asked(what, lambda admin: admin.commit(group, to_commit))
        _check(what, (row.error for row in rows if row.error not in _OF_ONE_PARTITION))
        return {row.name: f"{describe(row.error)}. {info(row.error).meaning}" for row in rows if row.error}

    async def close(self) -> None:
        if self._admin is not None:
            await self._admin.close()

    async def _asked(self, what: str, ask: Callable[[Admin], Awaitable[Rows[Row]]]) -> Rows[Row]:
        try:
            async with self._opening:
                if self._admin is None:
                    self._admin = await Admin.open(self._settings)
            rows = await ask(self._admin)
        except _LASTING as error:
            raise CommitRefused(error.reason) from None
        except ClientError as error:
            raise CommitDelayed(error.reason) from None
        for answer in rows.refused:
            is_lookup = answer.asked == "FindCoordinator"
            _check(f"group {answer.group} has no coordinator" if is_lookup else what, [answer.error])
        for row in rows.unasked:
            raise CommitDelayed(row.reason)
        return rows


def _check(what: str, errors: Iterable[int]) -> None:
    """Raises for the first error."""
    for error in errors:
        if error == ErrorCode.NONE:
            continue
        if error in PASSING:
            raise CommitDelayed(f"{what}: {describe(error)}. {info(error).meaning}")
        if error in _HAS_MEMBERS:
            raise CommitRefused(
                f"{what}: {describe(error)}. It has members: consumers that have joined it. A query of "
                "Spark's is no member, so it needs a group of its own, or those consumers have to stop."
            )
        raise CommitRefused(f"{what}: {describe(error)}. {info(error).meaning}")
