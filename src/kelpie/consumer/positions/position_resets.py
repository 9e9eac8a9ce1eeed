"""Positions by the reset policy: ListOffsets, one request to each leader.

| error of a partition                      | what follows                                              |
|-------------------------------------------|-----------------------------------------------------------|
| none, with an offset                      | begin there                                               |
| none, without one (no record so young)    | ask again when the request would have timed out           |
| 43 UNSUPPORTED_FOR_MESSAGE_FORMAT         | the same                                                  |
| 29 TOPIC_AUTHORIZATION_FAILED             | poll raises it                                            |
| any other: 3, 5, 6, 9, 56, 74, 75, 78, …  | ask for metadata, and again after the back-off            |

An answer counts only if the partition is still assigned and still waits for the same policy. A partition
without a leader waits for metadata. "latest" is the high watermark or, with read_committed, the last stable
offset.
"""

from collections.abc import Mapping

from kelpie.consumer.effects import BrokerNode, Effects, Failure, FailureKind, Problem, ProblemKind
from kelpie.consumer.metadata import ConsumerMetadata
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.consumer.positions.leaders import by_leader
from kelpie.consumer.positions.partition_state import FetchPosition, FetchState, PositionOrigin
from kelpie.consumer.positions.reset_policy import ResetPolicy
from kelpie.consumer.positions.subscription_state import SubscriptionState
from kelpie.consumer.steps import Failed, StepKind
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.questions.list_offsets import AskOffsets, ListedOffset
from kelpie.questions.question import listed


class PositionResets:
    def __init__(
        self, requests: PendingRequests, metadata: ConsumerMetadata, assignment: SubscriptionState
    ) -> None:
        self._requests = requests
        self._metadata = metadata
        self._assignment = assignment

    def advance(self, effects: Effects) -> None:
        due = self._assignment.due(FetchState.AWAIT_RESET, effects.now)
        for node, partitions in by_leader(
            effects, self._requests, self._metadata, self._assignment, due
        ).items():
            self._send(effects, node, partitions)

    def _send(self, effects: Effects, node: BrokerNode, partitions: list[TopicPartition]) -> None:
        config = self._requests.config
        policies: dict[TopicPartition, ResetPolicy] = {}
        wanted: dict[TopicPartition, tuple[int, int | None]] = {}
        for partition in partitions:
            state = self._assignment.get(partition)
            assert state is not None
            assert state.policy is not None
            policies[partition] = state.policy
            wanted[partition] = (state.policy.timestamp(effects.now), self._metadata.leader(partition).epoch)
        # These are not asked for again before the request has ended.
        self._assignment.not_before(partitions, effects.now + config.request_timeout_ms)
        self._requests.send(
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
        if again:
            self._assignment.not_before(again, effects.now + self._requests.config.retry_backoff_ms)
            self._metadata.outdated()
        if forbidden:
            self._assignment.not_before(forbidden, effects.now + self._requests.config.retry_backoff_ms)
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            text = f"{listed(forbidden)} cannot be read: {describe(error)}. {info(error).meaning}"
            effects.fail(Problem(ProblemKind.NOT_AUTHORISED, text, error, tuple(forbidden)))
        sentences = (
            [f"It begins with {', '.join(begun[:8])}{' …' if len(begun) > 8 else ''}."] if begun else []
        )
        if again:
            sentences.append(
                f"{info(min(reasons)).meaning} {listed(again)}: asked again in "
                f"{self._requests.config.retry_backoff_ms} ms, with new metadata."
            )
        if nothing:
            sentences.append(f"{listed(nothing)}: no record is so young; it waits for one.")
        if forbidden:
            sentences.append(f"{listed(forbidden)} may not be read: the consumer gives up.")
        text = " ".join(sentences) or "It no longer matters."
        return Failed(text) if again or forbidden else text

    def _begin(self, partition: TopicPartition, policy: ResetPolicy, row: ListedOffset) -> bool:
        state = self._assignment.get(partition)
        if state is None or state.fetch_state is not FetchState.AWAIT_RESET or state.policy != policy:
            return False  # Revoked, or at another position, or waiting for another policy since the request.
        assert row.offset is not None
        self._metadata.seen(partition, row.epoch)
        # The answer says nothing of the record before this offset, so there is nothing to validate.
        position = FetchPosition(row.offset, None, self._metadata.leader(partition))
        return state.seek_unvalidated(position, PositionOrigin.RESET)

    def _on_failure(
        self, effects: Effects, partitions: list[TopicPartition], failure: Failure
    ) -> str | Failed:
        wait_ms = self._requests.config.retry_backoff_ms
        self._assignment.not_before(partitions, effects.now + wait_ms)
        if failure.kind is FailureKind.UNSUPPORTED:
            effects.fail(Problem(ProblemKind.UNSUPPORTED, failure.text))
            return Failed("The consumer gives up.")
        self._metadata.outdated()
        return Failed(f"It is asked again in {wait_ms} ms, with new metadata.")
