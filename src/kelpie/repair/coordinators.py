"""Groups at their coordinators, for a repair: what the admin client says, or an exception in words.

A repair needs the whole answer. So a failure is raised here, after the admin client has waited for it to
pass.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kelpie.client.admin.admin import Admin
from kelpie.client.admin.groups import ABSENT
from kelpie.client.admin.rows import Rows
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.cluster import ClusterView
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted
from kelpie.observations import GroupState
from kelpie.observations.groups import OTHER_KINDS
from kelpie.questions.offset_commit import OffsetToCommit
from kelpie.repair.applying import StepFailed
from kelpie.repair.claims import Claim, ClaimKind
from kelpie.repair.picture import survey_cluster
from kelpie.wire.api.offset_delete import OffsetDeleteRequest

_HINTS = {
    ErrorCode.UNKNOWN_MEMBER_ID.value: "The group has members by now: stop them first.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE.value: "Perhaps fewer replicas of its partition are in sync than "
    "min.insync.replicas wants: start another broker that holds one.",
}
"""What a refusal to commit means to whoever runs a repair."""
_NO_SUCH_GROUP = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
"""Coordinators answer so of a group that they do not know."""


class CoordinatorRefused(StepFailed):
    """A coordinator answered with an error."""

    def __init__(self, what: str, error: int, message: str = "") -> None:
        super().__init__(f"{what}: {describe(error)}. {message or info(error).meaning}")


class Coordinators:
    """All groups of a cluster, with the newest picture of it."""

    def __init__(self, nodes: Nodes, cluster: ClusterView, limit_s: float = 30.0) -> None:
        self.nodes = nodes
        self._admin = Admin(nodes, patience_s=limit_s)
        self.cluster = cluster
        """As it was surveyed last."""

    async def survey_again(self, topics: Collection[str]) -> ClusterView:
        """A newer picture of the cluster, with these topics."""
        self.cluster = await survey_cluster(self.nodes, topics)
        return self.cluster

    async def state(self, group: str) -> GroupState:
        """State and members; ABSENT if there is no such group. Raises CoordinatorRefused, ClientError."""
        what = f"Group {group} cannot be described"
        states = await self._admin.describe_groups([group])
        _check_answer(what, states)
        state = states[0]
        if state.error not in _NO_SUCH_GROUP:
            _check(what, state.error)
        if (state.error or state.state == ABSENT) and group in self.cluster.listed_groups:
            # Share and Streams groups are listed; DescribeGroups does not know them.
            for row in await self._admin.list_groups():
                if row.group == group and row.kind in OTHER_KINDS:
                    return row
        return state._replace(state=state.state or ABSENT, error=ErrorCode.NONE)

    async def committed(self, group: str) -> dict[TopicPartition, Claim]:
        """All offsets of a group. Raises CoordinatorRefused, ClientError."""
        rows = await self._admin.committed([group])
        _check_answer(f"The offsets of group {group} cannot be fetched", rows)
        claims = {}
        for row in rows:
            if row.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                continue  # Kafka 0.9 was asked for a partition that is gone.
            _check(f"The offset of {row.name} of group {group} cannot be fetched", row.error)
            claims[row.name] = Claim.of_row(row, row.at, kind=ClaimKind.COORDINATOR)
        return claims

    async def commit(
        self, group: str, claims: Sequence[Claim], planned: Mapping[TopicPartition, int | None]
    ) -> str:
        """Commits as no member, which a group without members takes. Raises StepFailed, ClientError.

        `planned`: the offsets that the plan found (None: no offset). If they have changed, nothing is done.
        """
        await self.require_unchanged(group, planned)
        offsets = {
            claim.partition: OffsetToCommit(
                claim.offset, claim.leader_epoch if claim.leader_epoch >= 0 else None, claim.metadata
            )
            for claim in claims
        }
        rows = await self._admin.commit(group, offsets)
        try:
            _check_answer(f"The offsets of group {group} cannot be committed", rows)
            for row in rows:
                _check(f"{row.name} cannot be committed for {group}", row.error, _HINTS.get(row.error, ""))
        except CoordinatorRefused as refused:
            done = sum(not row.error for row in rows)
            before = f" {done} of {len(claims)} offsets were committed before." if done else ""
            raise StepFailed(f"{refused}{before}") from None
        return f"{counted(len(claims), 'offset')} committed for group {group}."

    async def require_unchanged(self, group: str, planned: Mapping[TopicPartition, int | None]) -> None:
        """Raises StepFailed if somebody has committed or deleted since the plan was made; ClientError."""
        try:
            committed = await self.committed(group)
        except CoordinatorRefused as refused:
            raise StepFailed(str(refused)) from None
        for partition, offset in planned.items():
            now = committed[partition].offset if partition in committed else None
            if now != offset:
                raise StepFailed(
                    f"{partition} of group {group} is at {_place(now)} now, and was at {_place(offset)} when "
                    "the plan was made: somebody else changes this group. This step was not begun. Look at "
                    "the plan again."
                )

    async def compare(self, group: str, claims: Sequence[Claim]) -> str:
        """Fetches offsets back. Raises StepFailed where they are not what was committed."""
        committed = await self.committed(group)
        for claim in claims:
            fetched = committed.get(claim.partition)
            offset = None if fetched is None else fetched.offset
            if offset != claim.offset:
                raise StepFailed(
                    f"{claim.partition} of group {group} was committed at {claim.offset}, and its "
                    f"coordinator says {'none' if offset is None else offset}. Does somebody use this name "
                    "already?"
                )
        return f"{counted(len(claims), 'offset')} of group {group} fetched back: all as committed."

    async def delete(self, group: str, planned: Mapping[TopicPartition, int | None]) -> str:
        """Deletes a group without members, and its offsets, if they are as `planned`.

        Raises StepFailed, ClientError.
        """
        await self.require_unchanged(group, planned)
        rows = await self._admin.delete_groups([group])
        _check_answer(f"Group {group} cannot be deleted", rows)
        for row in rows:
            if row.error is not ErrorCode.GROUP_ID_NOT_FOUND:
                _check(f"Group {group} cannot be deleted", row.error)
        return f"Group {group} is deleted."

    async def delete_offsets(self, group: str, planned: Mapping[TopicPartition, int | None]) -> str:
        """Deletes these offsets of a group without members (2.4), if they are as `planned`.

        Raises StepFailed, ClientError.
        """
        await self.require_unchanged(group, planned)
        rows = await self._admin.delete_offsets(group, list(planned))
        what = f"Offsets of group {group} cannot be deleted"
        _check_answer(what, rows)
        for row in rows:
            _check(f"{what} ({row.name})", row.error)
        return f"{counted(len(planned), 'offset')} of group {group} deleted."

    async def can_delete_offsets(self, group: str) -> bool:
        """Whether single offsets can be deleted: since Kafka 2.4."""
        node = self.cluster.coordinator_of(group)
        return node is not None and (await self.nodes.versions(node)).speaks(OffsetDeleteRequest)

    async def can_delete(self, group: str) -> bool:
        """Whether groups can be deleted at all: since Kafka 1.1."""
        node = self.cluster.coordinator_of(group)
        return node is not None and await self._admin.can_delete_groups(node)

    async def release_deletes_groups(self) -> bool:
        """Whether a living broker knows how to delete groups, whichever coordinates them."""
        node = next((node for node, broker in self.cluster.brokers.items() if broker.alive), None)
        return node is not None and await self._admin.can_delete_groups(node)


def _place(offset: int | None) -> str:
    return "no offset" if offset is None else str(offset)


def _check_answer(what: str, rows: Rows[Any]) -> None:
    """Raises for what failed as a whole."""
    for answer in rows.refused:
        _check(what, answer.error)
    for row in rows.unasked:
        raise ClientError(row.reason)


def _check(what: str, error: int, message: str = "") -> None:
    if error != ErrorCode.NONE:
        raise CoordinatorRefused(what, error, message)
