"""The positions of the probe and its fetch, by Kelpie's consumer; it neither joins nor commits."""

import asyncio
from collections.abc import Sequence

from kelpie.client.consumer.consumer import Consumer, ConsumerError
from kelpie.client.nodes import Nodes
from kelpie.client.probe.report import ChapterStatus, PartitionStart, ProbeChapter, last_failure
from kelpie.consumer.effects import Problem, ProblemKind
from kelpie.consumer.positions.reset_policy import ResetPolicy
from kelpie.consumer.steps import StepKind
from kelpie.model.names import TopicPartition
from kelpie.questions.question import listed

_POSITION_STEPS = (
    StepKind.METADATA,
    StepKind.COMMITTED,
    StepKind.RESET,
    StepKind.VALIDATE,
    StepKind.POSITION,
)
_POLL_S = 0.2
_SHOWN = 12


class ReadProbe:
    def __init__(
        self,
        nodes: Nodes,
        group: str | None,
        partitions: Sequence[TopicPartition],
        *,
        policy: ResetPolicy,
    ) -> None:
        settings = nodes.settings
        self._partitions = tuple(partitions)
        self._patience_s = settings.request_timeout_s
        self._policy = policy
        self._group = group
        self._problem: Problem | None = None
        self._consumer = Consumer(
            settings,
            group,
            partitions=partitions,
            memory=nodes.memory,
            client_id="kelpie-probe",
            auto_offset_reset=policy,
            request_timeout_ms=max(1, int(settings.request_timeout_s * 1000)),
            fetch_max_wait_ms=100,
            max_partition_fetch_bytes=65_536,
        )

    async def run(self) -> list[ProbeChapter]:
        deadline = asyncio.get_running_loop().time() + self._patience_s
        try:
            while self._problem is None and len(self._fetched()) < len(self._partitions):
                left_s = deadline - asyncio.get_running_loop().time()
                if left_s <= 0:
                    break
                try:
                    await self._consumer.poll(min(_POLL_S, left_s))
                except ConsumerError as raised:
                    if raised.problem.kind is not ProblemKind.TOO_LARGE:  # A record exists; that is enough.
                        self._problem = raised.problem
        finally:
            await self._consumer.crash()  # It is in no group, so it leaves none.
        positions = self._tell_positions()
        if positions.verdict is ChapterStatus.FAILED:
            return [positions]
        return [positions, self._tell_fetch()]

    @property
    def starts(self) -> tuple[PartitionStart, ...]:
        """The first offset of each partition that has a position."""
        rows = []
        for partition, state in self._consumer.machine.assignment:
            if state.began is not None:
                offset, origin = state.began
                rows.append(
                    PartitionStart(partition, offset, origin.value, state.high_watermark, state.unusable)
                )
        return tuple(sorted(rows, key=lambda start: start.partition))

    def _fetched(self) -> set[TopicPartition]:
        return {
            partition
            for partition, state in self._consumer.machine.assignment
            if state.high_watermark is not None
        }

    def _tell_positions(self) -> ProbeChapter:
        title = "Take up the positions"
        steps = tuple(step for step in self._consumer.steps if step.kind in _POSITION_STEPS)
        starts = {start.partition: start for start in self.starts}
        missing = [partition for partition in self._partitions if partition not in starts]
        if not missing:
            said = tuple(self._described(start) for start in list(starts.values())[:_SHOWN])
            if len(starts) > _SHOWN:
                said += (f"… and {len(starts) - _SHOWN} more partitions.",)
            return ProbeChapter("positions", title, ChapterStatus.OK, said, steps=steps)
        last = last_failure(steps)
        why = f"No position for {listed(missing)}. "
        if self._problem is not None:
            why += self._problem.text
        elif last is not None:
            why += f"{last.asked_of} answered {last.request}: {last.answer}. {last.follows}"
        else:
            why += "The answers did not come in time."
        needed = "an offset for each partition" if last is None else last.needed
        return ProbeChapter("positions", title, ChapterStatus.FAILED, (), why, needed, steps)

    def _described(self, start: PartitionStart) -> str:
        before = "nothing committed" if start.unusable is None else f"no record at {start.unusable}"
        where = {
            "committed": "the committed offset",
            "reset": f"{before}; auto.offset.reset={self._policy}",
            "truncated": "the log was cut back to here",
        }.get(start.origin, start.origin)
        return f"{start.partition} at {start.offset} ({where})."

    def _tell_fetch(self) -> ProbeChapter:
        title = "Fetch from there"
        steps = tuple(step for step in self._consumer.steps if step.kind is StepKind.FETCH)
        unfetched = [partition for partition in self._partitions if partition not in self._fetched()]
        if not unfetched and self._problem is None:
            behind = sum(start.behind or 0 for start in self.starts)
            waiting = [start for start in self.starts if start.behind]
            sentence = f"All {len(self._partitions)} partitions answer."
            if len(self._partitions) == 1:
                sentence = "The partition answers."
            sentence += (
                f" {behind} offsets to come in {len(waiting)} of them." if behind else " Nothing new yet."
            )
            return ProbeChapter("records", title, ChapterStatus.OK, (sentence,), steps=steps)
        last = last_failure(steps)
        why = f"No answer for {listed(unfetched)}. " if unfetched else ""
        if self._problem is not None:
            why += self._problem.text
        elif last is not None:
            why += f"{last.answer}. {last.follows}"
        needed = "records, or none yet, from the position on"
        return ProbeChapter("records", title, ChapterStatus.FAILED, (), why.strip(), needed, steps)
