"""What a consumer does, as a log of Java's client would tell it: in its words and its layout.

The log follows the requests, answers and events of the consumer (`ConsumerTrace`); evidence/logs/ reads it.
"""

from pathlib import Path
from typing import Any

from kelpie.consumer.effects import Event, OutgoingRequest, PartitionsAssigned, PartitionsRevoked
from kelpie.errors import ErrorCode
from kelpie.lab.broker_log import log_time
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.find_coordinator import AskCoordinator, FoundCoordinator
from kelpie.questions.heartbeat import AskHeartbeat
from kelpie.questions.join_group import AskToJoin, Joined
from kelpie.questions.leave_group import AskToLeave
from kelpie.questions.offset_commit import AskToCommit
from kelpie.questions.sync_group import AskForAssignment
from kelpie.wire.consumer_protocol import partitions_in

_LOGGER = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
_POLL_TIMEOUT = "consumer poll timeout has expired."
_POLL_TIMEOUT_ADVICE = (
    " This means the time between subsequent calls to poll() was longer "
    "than the configured max.poll.interval.ms, which typically implies that the poll loop is spending too "
    "much time processing messages. You can address this either by increasing max.poll.interval.ms or by "
    "reducing the maximum size of batches returned in poll() with max.poll.records."
)
_KICKED_OUT = (
    "Offset commit cannot be completed since the consumer is not part of an active group for auto partition "
    "assignment; it is likely that the consumer was kicked out of the group."
)
_FATAL_JOINS = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "The group member's supported protocols are incompatible with "
    "those of existing members or first group member tried to join with empty protocol type or empty "
    "protocol list.",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "The group has reached its maximum size.",
    ErrorCode.INVALID_SESSION_TIMEOUT: "The session timeout is not within the range allowed by the broker "
    "(as configured by group.min.session.timeout.ms and group.max.session.timeout.ms).",
}
"""Errors of JoinGroup after which a consumer gives up."""
_NOT_A_MEMBER: dict[int, str] = {
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
    ErrorCode.ILLEGAL_GENERATION: "Specified group generation id is not valid.",
}


class JavaLog:
    """The log of one client: a file in the folder of a stage's logs."""

    def __init__(self, folder: Path, client_id: str, group: str, instance_id: str | None = None) -> None:
        self._path = folder / f"{client_id}.log"
        named = f"instanceId={instance_id}, " if instance_id else ""
        self._start = f"[Consumer {named}clientId={client_id}, groupId={group}] "
        self._instance = f"Optional[{instance_id}]" if instance_id else "Optional.empty"
        self._coordinator = ""
        self._protocol = ""

    def sent(self, request: OutgoingRequest, now: Instant) -> None:
        match request.question:
            case AskToJoin():
                self._write("(Re-)joining group", now)
            case AskForAssignment(generation=generation, assignments=assignments) if assignments:
                parts = (
                    f"{member_id}=Assignment(partitions=[{_listed(blob)}])" for member_id, blob in assignments
                )
                text = f"Finished assignment for group at generation {generation}: {{{', '.join(parts)}}}"
                self._write(text, now)
            case AskToLeave(member_id=member_id, reason=reason):
                if reason == _POLL_TIMEOUT:
                    self._write(_POLL_TIMEOUT + _POLL_TIMEOUT_ADVICE, now, "WARN")
                to = f"to coordinator {self._coordinator} due to {reason}"
                self._write(f"Member {member_id} sending LeaveGroup request {to}", now)

    def answered(self, request: OutgoingRequest, answer: Any, now: Instant) -> None:
        match request.question:
            case AskCoordinator() if not answer.error:
                self._coordinator = _node(answer)
                self._write(f"Discovered group coordinator {self._coordinator}", now)
            case AskToJoin() as join:
                self._joined(join, answer, now)
            case AskForAssignment() as sync if not answer.error:
                sent = self._generation(sync.generation, sync.member_id)
                self._write(f"Successfully synced group in generation {sent}", now)
            case AskHeartbeat() as heartbeat:
                self._heartbeat(heartbeat, answer, now)
            case AskToLeave():
                why = "consumer pro-actively leaving the group"
                self._write(f"Resetting generation and member id due to: {why}", now)
                self._write(f"Request joining group due to: {why}", now)
            case AskToCommit() as commit if any(answer.values()):
                self._not_committed(commit, max(answer.values()), now)

    def happened(self, event: Event, now: Instant) -> None:
        match event:
            case PartitionsAssigned(partitions):
                listed = ", ".join(map(str, partitions))
                self._write(f"Adding newly assigned partitions: {listed}", now)
            case PartitionsRevoked(partitions):
                listed = ", ".join(map(str, partitions))
                self._write(f"Revoke previously assigned partitions [{listed}]", now)

    def could_not_read(self, partition: TopicPartition, offset: int, now: Instant) -> None:
        """As an application logs what poll() threw."""
        self._write(
            "Polling failed: org.apache.kafka.common.errors.RecordDeserializationException: Error "
            f"deserializing VALUE for partition {partition} at offset {offset}. If needed, please seek past "
            "the record to continue consumption.",
            now,
            "ERROR",
        )

    def could_not_speak(
        self, request: str, own: tuple[int, int], theirs: tuple[int, int], now: Instant
    ) -> None:
        """It has no version of a request in common with a broker."""
        self._write(
            "Polling failed: org.apache.kafka.common.errors.UnsupportedVersionException: The node does not "
            f"support {request} with version in range [{own[0]},{own[1]}]. The supported range is "
            f"[{theirs[0]},{theirs[1]}].",
            now,
            "ERROR",
        )

    def _joined(self, join: AskToJoin, joined: Joined, now: Instant) -> None:
        if not joined.error:
            self._protocol = joined.protocol or ""
            generation = self._generation(joined.generation, joined.member_id)
            self._write(f"Successfully joined group with generation {generation}", now)
        elif joined.error == ErrorCode.MEMBER_ID_REQUIRED:
            why = f"need to re-join with the given member-id: {joined.member_id}"
            self._write(f"Request joining group due to: {why}", now)
        elif joined.error == ErrorCode.FENCED_INSTANCE_ID:
            sent = self._generation(-1, join.member_id)
            self._write(
                f"JoinGroup failed: The group instance id {self._instance} has been fenced by another "
                f"instance. Sent generation was {sent}",
                now,
                "ERROR",
            )
        elif joined.error in _FATAL_JOINS:
            text = f"JoinGroup failed due to fatal error: {_FATAL_JOINS[ErrorCode(joined.error)]}"
            self._write(text, now, "ERROR")

    def _heartbeat(self, heartbeat: AskHeartbeat, error: int, now: Instant) -> None:
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            self._write("Request joining group due to: group is already rebalancing", now)
        elif error in _NOT_A_MEMBER:
            sent = self._generation(heartbeat.generation, heartbeat.member_id)
            why = f"encountered {ErrorCode(error).name} from HEARTBEAT response"
            self._write(
                f"Attempt to heartbeat with {sent} and group instance id {self._instance} failed due to "
                f"{ErrorCode(error).name}, resetting generation",
                now,
            )
            self._write(f"Resetting generation and member id due to: {why}", now)
            self._write(f"Request joining group due to: {why}", now)
        elif error == ErrorCode.FENCED_INSTANCE_ID:
            text = f"Caught fenced group.instance.id {self._instance} error in heartbeat thread"
            self._write(text, now, "ERROR")

    def _not_committed(self, commit: AskToCommit, error: int, now: Instant) -> None:
        offsets = ", ".join(
            f"{partition}=OffsetAndMetadata{{offset={offset}, leaderEpoch=null, metadata=''}}"
            for partition, (offset, *_) in commit.offsets.items()
        )
        why = ErrorCode(error).name
        if error in _NOT_A_MEMBER:
            sent = self._generation(commit.generation, commit.member_id)
            self._write(f"OffsetCommit failed with {sent}: {_NOT_A_MEMBER[error]}", now)
            why = _KICKED_OUT
        self._write(f"Asynchronous auto-commit of offsets {{{offsets}}} failed: {why}", now, "WARN")

    def _generation(self, generation: int, member_id: str) -> str:
        return f"Generation{{generationId={generation}, memberId='{member_id}', protocol='{self._protocol}'}}"

    def _write(self, text: str, now: Instant, level: str = "INFO") -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"[{log_time(now)}] {level} {self._start}{text} ({_LOGGER})\n")


def _node(coordinator: FoundCoordinator) -> str:
    """A coordinator as the client names it: another id, so that it gets a connection of its own."""
    connection_id = 2**31 - 1 - coordinator.node_id
    return f"{coordinator.host}:{coordinator.port} (id: {connection_id} rack: null isFenced: false)"


def _listed(assignment: bytes) -> str:
    return ", ".join(map(str, partitions_in(assignment)))
