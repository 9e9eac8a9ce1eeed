"""The probe's join: JoinGroup, SyncGroup, a heartbeat, LeaveGroup, and nothing left behind."""

import asyncio

from kelpie.client.address import Address
from kelpie.client.client_errors import ClientError, Unsupported
from kelpie.client.connection import Connection
from kelpie.client.journey.consumer import Consumer
from kelpie.client.journey.failures import ConsumerProblem
from kelpie.client.journey.probe.describing import AskToDelete
from kelpie.client.journey.probe.journey import Chapter, Verdict
from kelpie.client.memory import Memory
from kelpie.client.settings import Settings
from kelpie.consumer import Place, Step, What
from kelpie.errors import ErrorCode, describe

_STEPS = (What.LOOKUP, What.JOIN, What.SYNC, What.ASSIGNMENT, What.HEARTBEAT, What.LEAVE)
_GONE = (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)
_POLL_S = 0.2
_CLOSE_S = 3.0


class Joining:
    def __init__(
        self,
        settings: Settings,
        memory: Memory,
        group: str,
        topics: tuple[str, ...],
    ) -> None:
        self._settings = settings
        self._memory = memory
        self._group = group
        self._patience_s = settings.request_timeout_s
        self._consumer = Consumer(
            settings,
            group,
            topics,
            memory=memory,
            client_id="kelpie-probe",
            assignors=("range", "roundrobin", "sticky", "cooperative-sticky"),
            session_timeout_ms=10_000,
            heartbeat_interval_ms=200,
            max_poll_interval_ms=30_000,
            request_timeout_ms=max(1, int(settings.request_timeout_s * 1000)),
        )

    async def run(self, coordinator: Place, *, is_scratch: bool) -> Chapter:
        title = "Join and take the assignment" if not is_scratch else "Join, as a scratch group beside it"
        problem = ""
        try:
            problem = await self._join()
        finally:
            left = await self._leave(coordinator, is_scratch)
        steps = tuple(step for step in self._consumer.steps if step.what in _STEPS)
        beaten = _last(steps, What.HEARTBEAT, failed=False)
        synced = _last(steps, What.SYNC, failed=False)
        if beaten is not None and synced is not None and not problem:
            joined = _last(steps, What.JOIN, failed=False)
            took_ms = sum(step.elapsed_ms for step in (joined, synced) if step is not None)
            said = (f"{self._group}: joined and synced in {took_ms} ms, heartbeat answered. {left}",)
            return Chapter("join", title, Verdict.OK, said, steps=steps)
        last = next((step for step in reversed(steps) if step.failed), None)
        why = problem or ("It was not done in time." if last is None else f"{last.answer}. {last.follows}")
        needed = "a generation, an assignment, and a heartbeat answered 0" if last is None else last.needed
        said = (f"{self._group}: {left}",)
        return Chapter("join", title, Verdict.FAILED, said, why, needed, steps)

    async def _join(self) -> str:
        """Until a heartbeat has been answered; what poll raised before that, if it did."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        try:
            while not self._heard(What.SYNC) and loop.time() < deadline:
                await self._consumer.poll(min(_POLL_S, max(0.01, deadline - loop.time())))
        except ConsumerProblem as raised:
            # It goes on to its positions in the same poll. They are looked at later, for the group itself.
            if not self._heard(What.SYNC):
                return str(raised)
        while not self._heard(What.HEARTBEAT) and loop.time() < deadline:
            await asyncio.sleep(0.01)  # Heartbeats need no poll.
        return ""

    def _heard(self, what: What) -> bool:
        return _last(self._consumer.steps, what, failed=False) is not None

    async def _leave(self, coordinator: Place, is_scratch: bool) -> str:
        place = self._consumer.coordinator or coordinator
        await self._consumer.close(_CLOSE_S)
        if not is_scratch:
            return "It has left again."
        if not any(step.what is What.JOIN for step in self._consumer.steps):
            return "Nothing was left behind."
        try:
            address = Address(place.host, place.port)
            async with await Connection.open(address, self._settings, memory=self._memory) as connection:
                error = await connection.put(AskToDelete(self._group))
        except Unsupported:
            return "It has left; this release forgets an empty group by itself."
        except ClientError as failure:
            return f"It could not be deleted ({failure.reason.rstrip('.')}); empty, it is forgotten one day."
        if error in _GONE:
            return "It has left and is deleted."
        return f"It could not be deleted ({describe(error)}); empty, it is forgotten one day."


def _last(steps: tuple[Step, ...], what: What, *, failed: bool) -> Step | None:
    return next((step for step in reversed(steps) if step.what is what and step.failed == failed), None)
