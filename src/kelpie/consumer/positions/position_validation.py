"""Validation of positions after a change of leader (KIP-320).

A new leader may have lost the end of the log (unclean election). OffsetForLeaderEpoch returns the end offset
of the epoch of the last record that was read, in the log of the new leader:

| answer                                    | what follows                                              |
|-------------------------------------------|-----------------------------------------------------------|
| the epoch ends at or behind the position  | all is well: FETCHING                                     |
| it ends before the position               | records read are gone. With a reset policy: go on where   |
|                                           | it ends, not where the policy would; without: poll raises |
| the leader knows no such epoch            | the reset policy decides; without one, poll raises it     |
| 29 TOPIC_AUTHORIZATION_FAILED             | poll raises it                                            |
| any other error: 3, 5, 6, 9, 56, 74, 75,… | ask for metadata, and again after the back-off            |
| the broker is older than 2.3              | no check                                                  |

An answer counts only if the position is still that of the request.
"""

from collections.abc import Mapping

from kelpie.consumer.effects import BrokerNode, Effects, Failure, FailureKind, Problem, ProblemKind
from kelpie.consumer.positions.leader_requests import LeaderRequests
from kelpie.consumer.positions.partition_state import FetchPosition, FetchState, PositionOrigin
from kelpie.consumer.steps import Failed, StepKind
from kelpie.errors import ErrorCode, info
from kelpie.model.names import TopicPartition
from kelpie.questions.offset_for_leader_epoch import AskEpochEnds, EpochEnd
from kelpie.questions.question import listed


class PositionValidation(LeaderRequests):
    def advance(self, effects: Effects) -> None:
        for partition, state in self.assignment:
            state.meet_leader(self.metadata.leader(partition))
            if not self.requests.config.validate_positions:
                state.validated()
        for node, partitions in self.due(effects, FetchState.AWAIT_VALIDATION).items():
            self._send(effects, node, partitions)

    def _send(self, effects: Effects, node: BrokerNode, partitions: list[TopicPartition]) -> None:
        positions: dict[TopicPartition, FetchPosition] = {}
        wanted: dict[TopicPartition, tuple[int, int]] = {}
        for partition in partitions:
            position = self.assignment[partition].position
            assert position is not None
            assert position.epoch is not None
            assert position.leader.epoch is not None
            positions[partition] = position
            wanted[partition] = (position.leader.epoch, position.epoch)
        self.requests.send(
            effects,
            StepKind.VALIDATE,
            node,
            AskEpochEnds(wanted),
            on_answer=lambda effects, rows: self._on_answer(effects, positions, rows),
            on_failure=lambda effects, failure: self._on_failure(effects, partitions, failure),
        )

    def _on_answer(
        self,
        effects: Effects,
        positions: Mapping[TopicPartition, FetchPosition],
        rows: Mapping[TopicPartition, EpochEnd],
    ) -> str | Failed:
        sentences: list[str] = []
        again, forbidden = [], []
        reasons: set[int] = set()
        for partition, position in positions.items():
            row = rows.get(partition, EpochEnd(ErrorCode.UNKNOWN_SERVER_ERROR))
            if row.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                forbidden.append(partition)
            elif row.error:
                again.append(partition)
                reasons.add(row.error)
            else:
                sentences += self._compare(effects, partition, position, row)
        if again:
            when = self.retry(effects, again)
            sentences.append(f"{info(min(reasons)).meaning} {listed(again)}: {when}.")
        if forbidden:
            sentences.append(self.forbidden(effects, forbidden))
        text = " ".join(sentences) or "All is as it was."
        return Failed(text) if again or forbidden else text

    def _compare(
        self, effects: Effects, partition: TopicPartition, asked: FetchPosition, row: EpochEnd
    ) -> list[str]:
        state = self.assignment.get(partition)
        if state is None or state.fetch_state is not FetchState.AWAIT_VALIDATION or state.position != asked:
            return []
        policy = self.requests.config.auto_offset_reset
        if row.end_offset < 0 or row.epoch < 0:
            if policy.resets:
                state.reset(policy)
                return [f"{partition}: the leader knows no epoch {asked.epoch}; it is reset to {policy}."]
            self._truncated(effects, partition, asked, None)
            return [f"{partition}: the leader knows no epoch {asked.epoch}, and nothing says where to begin."]
        if row.end_offset >= asked.offset:
            state.validated()
            return []
        if policy.resets:
            state.seek_validated(
                FetchPosition(row.end_offset, row.epoch, asked.leader), PositionOrigin.TRUNCATED
            )
            lost = asked.offset - row.end_offset
            return [
                f"{partition}: the log was cut back to {row.end_offset}; {lost} offsets before "
                f"{asked.offset} are gone, and it goes on where the log ends."
            ]
        self._truncated(effects, partition, asked, row.end_offset)
        return [f"{partition}: the log was cut back to {row.end_offset}, and there is no reset policy."]

    def _truncated(
        self, effects: Effects, partition: TopicPartition, at: FetchPosition, end_offset: int | None
    ) -> None:
        until = "somewhere before it" if end_offset is None else f"at {end_offset}"
        text = (
            f"The log of {partition} was truncated: the consumer stands at {at.offset}, and what it has read "
            f"ends {until} in the leader's log. auto.offset.reset is none, so it must be told where to go on."
        )
        effects.fail(Problem(ProblemKind.TRUNCATED, text, partitions=(partition,)))
        self.assignment.not_before([partition], effects.now + self.requests.config.retry_backoff_ms)

    def _on_failure(
        self, effects: Effects, partitions: list[TopicPartition], failure: Failure
    ) -> str | Failed:
        if failure.kind is not FailureKind.UNSUPPORTED:
            return self.unanswered(effects, partitions)
        for partition in partitions:
            state = self.assignment.get(partition)
            if state is not None:
                state.validated()
        return "The broker cannot tell; the positions are used unchecked."
