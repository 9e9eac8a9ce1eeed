"""Positions by the reset policy: ListOffsets, one request to each leader.

| error of a partition                      | what follows                                              |
|-------------------------------------------|-----------------------------------------------------------|
| none, with an offset                      | begin there                                               |
| none, without one (no record so young)    | ask again when the request would have timed out           |
| 43 UNSUPPORTED_FOR_MESSAGE_FORMAT         | the same                                                  |
| 29 TOPIC_AUTHORIZATION_FAILED             | poll raises it                                            |
| any other: 3, 5, 6, 9, 56, 74, 75, 78, …  | ask for metadata, and again after the back-off            |

An answer counts only if the partition is still assigned and still waits for the same policy. "latest" is
the high watermark or, with read_committed, the last stable offset.
"""

from collections.abc import Mapping

from kelpie.consumer.effects import BrokerNode, Effects, Failure, FailureKind, Problem, ProblemKind
from kelpie.consumer.positions.leader_requests import LeaderRequests
from kelpie.consumer.positions.partition_state import FetchPosition, FetchState, PositionOrigin
from kelpie.consumer.positions.reset_policy import ResetPolicy
from kelpie.consumer.steps import Failed, StepKind
from kelpie.errors import ErrorCode, info
from kelpie.model.names import TopicPartition
from kelpie.questions.list_offsets import AskOffsets, ListedOffset
from kelpie.questions.question import listed


class PositionResets(LeaderRequests):
    def advance(self, effects: Effects) -> None:
        for node, partitions in self.due(effects, FetchState.AWAIT_RESET).items():
            self._send(effects, node, partitions)

    def _send(self, effects: Effects, node: BrokerNode, partitions: list[TopicPartition]) -> None:
        config = self.requests.config
        policies: dict[TopicPartition, ResetPolicy] = {}
        wanted: dict[TopicPartition, tuple[int, int | None]] = {}
        for partition in partitions:
            policy = self.assignment[partition].policy
            assert policy is not None
            policies[partition] = policy
            wanted[partition] = (policy.timestamp(effects.now), self.metadata.leader(partition).epoch)
        self.requests.send(
            effects,
            StepKind.RESET,
            node,
            AskOffsets(int(config.isolation_level), wanted, config.request_timeout_ms),
            on_answer=lambda effects, rows: self._on_answer(effects, policies, rows),
            on_failure=lambda effects, failure: self._on_failure(effects, partitions, failure),
        )

    def _on_answer(
        self,
        effects: Effects,
        policies: Mapping[TopicPartition, ResetPolicy],
        rows: Mapping[TopicPartition, ListedOffset],
    ) -> str | Failed:
        begun, nothing, again, forbidden = [], [], [], []
        reasons: set[int] = set()
        for partition, policy in policies.items():
            row = rows.get(partition, ListedOffset(ErrorCode.UNKNOWN_SERVER_ERROR))
            if row.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                forbidden.append(partition)
            elif row.error and row.error != ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                again.append(partition)
                reasons.add(row.error)
            elif row.offset is None:
                nothing.append(partition)
            elif self._begin(partition, policy, row):
                begun.append(f"{partition} at {row.offset}")
        sentences: list[str] = []
        if begun:
            sentences.append(f"It begins with {', '.join(begun[:8])}{' …' if len(begun) > 8 else ''}.")
        if again:
            when = self.retry(effects, again)
            sentences.append(f"{info(min(reasons)).meaning} {listed(again)}: {when}, with new metadata.")
        if nothing:
            sentences.append(f"{listed(nothing)}: no record is so young; it waits for one.")
        if forbidden:
            sentences.append(self.forbidden(effects, forbidden))
        text = " ".join(sentences) or "It no longer matters."
        return Failed(text) if again or forbidden else text

    def _begin(self, partition: TopicPartition, policy: ResetPolicy, row: ListedOffset) -> bool:
        state = self.assignment.get(partition)
        if state is None or state.fetch_state is not FetchState.AWAIT_RESET or state.policy != policy:
            return False  # Revoked, or at another position, or waiting for another policy since the request.
        assert row.offset is not None
        self.metadata.seen(partition, row.epoch)
        # The answer says nothing of the record before this offset, so there is nothing to validate.
        position = FetchPosition(row.offset, None, self.metadata.leader(partition))
        return state.seek_unvalidated(position, PositionOrigin.RESET)

    def _on_failure(
        self, effects: Effects, partitions: list[TopicPartition], failure: Failure
    ) -> str | Failed:
        if failure.kind is not FailureKind.UNSUPPORTED:
            return self.unanswered(effects, partitions)
        self.assignment.not_before(partitions, effects.now + self.requests.config.retry_backoff_ms)
        effects.fail(Problem(ProblemKind.UNSUPPORTED, failure.text))
        return Failed("The consumer gives up.")
