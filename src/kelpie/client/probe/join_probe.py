"""The join of the probe: join, assignment, a heartbeat, leave; a scratch group is deleted at the end.

A classic member has joined when SyncGroup was answered. In the consumer protocol (KIP-848) the first
heartbeat joins, and the next one acknowledges the assignment.
"""

import asyncio

from kelpie.client.admin.admin import Admin
from kelpie.client.admin.rows import Rows
from kelpie.client.client_errors import ClientError
from kelpie.client.consumer.consumer import Consumer, ConsumerError
from kelpie.client.nodes import Nodes
from kelpie.client.probe.report import ChapterStatus, ProbeChapter, last_failure
from kelpie.consumer.config import GroupProtocol
from kelpie.consumer.effects import BrokerNode
from kelpie.consumer.steps import ConsumerStep, StepKind
from kelpie.errors import ErrorCode
from kelpie.observations import CoordinatorAnswer

_STEPS = (
    StepKind.LOOKUP,
    StepKind.JOIN,
    StepKind.SYNC,
    StepKind.ASSIGNMENT,
    StepKind.HEARTBEAT,
    StepKind.LEAVE,
)
_POLL_S = 0.2
_CLOSE_S = 3.0


class JoinProbe:
    def __init__(
        self,
        nodes: Nodes,
        group: str,
        topics: tuple[str, ...],
        *,
        protocol: GroupProtocol = GroupProtocol.CLASSIC,
    ) -> None:
        settings = nodes.settings
        self._nodes = nodes
        self._group = group
        self._patience_s = settings.request_timeout_s
        self._is_classic = protocol is GroupProtocol.CLASSIC
        self._consumer = Consumer(
            settings,
            group,
            topics,
            memory=nodes.memory,
            client_id="kelpie-probe",
            group_protocol=protocol,
            assignors=("range", "roundrobin", "sticky", "cooperative-sticky"),
            session_timeout_ms=10_000,
            heartbeat_interval_ms=200,
            max_poll_interval_ms=30_000,
            request_timeout_ms=max(1, int(settings.request_timeout_s * 1000)),
        )

    async def run(self, coordinator: BrokerNode, *, is_scratch: bool) -> ProbeChapter:
        title = "Join and take the assignment" if not is_scratch else "Join, as a scratch group beside it"
        problem = ""
        try:
            problem = await self._join()
        finally:
            left = await self._leave(coordinator, is_scratch)
        steps = tuple(step for step in self._consumer.steps if step.kind in _STEPS)
        heartbeat, joined, synced = (
            _last(steps, kind) for kind in (StepKind.HEARTBEAT, StepKind.JOIN, StepKind.SYNC)
        )
        if heartbeat is not None and self._has_assignment() and not problem:
            elapsed_ms = sum(step.elapsed_ms for step in (joined, synced) if step is not None)
            done = "joined and synced" if self._is_classic else "joined and assigned"
            said = (f"{self._group}: {done} in {elapsed_ms} ms, heartbeat answered. {left}",)
            return ProbeChapter("join", title, ChapterStatus.OK, said, steps=steps)
        last = last_failure(steps)
        why = problem or ("It was not done in time." if last is None else f"{last.answer}. {last.follows}")
        needed = "a generation, an assignment, and a heartbeat answered 0" if last is None else last.needed
        said = (f"{self._group}: {left}",)
        return ProbeChapter("join", title, ChapterStatus.FAILED, said, why, needed, steps)

    async def _join(self) -> str:
        """Poll until a heartbeat has been answered. Returns the problem that poll raised, or nothing."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        try:
            while not self._has_assignment() and loop.time() < deadline:
                await self._consumer.poll(min(_POLL_S, max(0.01, deadline - loop.time())))
        except ConsumerError as raised:
            # The same poll goes on to positions. The probe looks at those of the user's group, later.
            if not self._has_assignment():
                return str(raised)
        while not self._succeeded(StepKind.HEARTBEAT) and loop.time() < deadline:
            await asyncio.sleep(0.01)  # Heartbeats need no poll.
        return ""

    def _has_assignment(self) -> bool:
        return self._succeeded(StepKind.SYNC if self._is_classic else StepKind.ASSIGNMENT)

    def _succeeded(self, kind: StepKind) -> bool:
        return _last(self._consumer.steps, kind) is not None

    async def _leave(self, coordinator: BrokerNode, is_scratch: bool) -> str:
        node = self._consumer.coordinator or coordinator
        await self._consumer.close(_CLOSE_S)
        if not is_scratch:
            return "It has left again."
        if not any(step.kind is StepKind.JOIN for step in self._consumer.steps):
            return "Nothing was left behind."
        admin = Admin(self._nodes)
        deleted: Rows[CoordinatorAnswer] = Rows()
        try:
            if not await admin.can_delete_groups(node.node_id):
                return "It has left; this release forgets an empty group by itself."
            deleted = await admin.delete_groups([self._group])
            reason = next(iter(deleted.failures.values()), "")
        except ClientError as failure:
            reason = failure.reason
        if not reason or any(row.error is ErrorCode.GROUP_ID_NOT_FOUND for row in deleted):
            return "It has left and is deleted."
        return f"It could not be deleted ({reason.rstrip('.')}); empty, it is forgotten one day."


def _last(steps: tuple[ConsumerStep, ...], kind: StepKind) -> ConsumerStep | None:
    """The last step of this kind that succeeded."""
    return next((step for step in reversed(steps) if step.kind is kind and not step.failed), None)
