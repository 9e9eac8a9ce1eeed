"""Kafka's errors as logs and tools write them: exception classes, names, sentences, numbers.

All of these are 15: "errorCode=15", "COORDINATOR_NOT_AVAILABLE", "CoordinatorNotAvailableException",
"GroupCoordinatorNotAvailableException" (0.9), "The coordinator is not available.", "Broker: Coordinator not
available" (librdkafka), "[Error 15] GroupCoordinatorNotAvailableError" (kafka-python).
"""

import re

from kelpie.errors import ErrorCode, info

_CLASS = re.compile(r"\b([A-Z][A-Za-z]+?)(?:Exception|Error)\b")
_NAME = re.compile(r"\b[A-Z]{3,}(?:_[A-Z]+)+\b")
_NUMBER = re.compile(r"\b(?:error_?[cC]ode=|\[Error )(-?\d{1,4})\b")

_OTHER_CLASSES = {
    "GroupCoordinatorNotAvailable": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "ConsumerCoordinatorNotAvailable": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "GroupLoadInProgress": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    "NotCoordinatorForGroup": ErrorCode.NOT_COORDINATOR,
    "NotCoordinatorForConsumer": ErrorCode.NOT_COORDINATOR,
    "NotLeaderForPartition": ErrorCode.NOT_LEADER_OR_FOLLOWER,
    "GroupAuthorization": ErrorCode.GROUP_AUTHORIZATION_FAILED,
    "TopicAuthorization": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "ClusterAuthorization": ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    "TransactionalIdAuthorization": ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    "SaslAuthentication": ErrorCode.SASL_AUTHENTICATION_FAILED,
    "InvalidTopic": ErrorCode.INVALID_TOPIC_EXCEPTION,
    "Timeout": ErrorCode.REQUEST_TIMED_OUT,
}
_SENTENCES = {
    "The coordinator is not available": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "The group coordinator is not available": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "Coordinator not available": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "Group Coordinator Not Available": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "Group coordinator not available": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "The coordinator is loading": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    "Coordinator load in progress": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    "Group coordinator load in progress": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    "This is not the correct coordinator": ErrorCode.NOT_COORDINATOR,
    "Broker: Not coordinator": ErrorCode.NOT_COORDINATOR,
    "The group is rebalancing": ErrorCode.REBALANCE_IN_PROGRESS,
    "Group rebalance in progress": ErrorCode.REBALANCE_IN_PROGRESS,
    "The coordinator is not aware of this member": ErrorCode.UNKNOWN_MEMBER_ID,
    "Broker: Unknown member": ErrorCode.UNKNOWN_MEMBER_ID,
    "Specified group generation id is not valid": ErrorCode.ILLEGAL_GENERATION,
    "Static consumer fenced by other consumer": ErrorCode.FENCED_INSTANCE_ID,
    "The session timeout is not within": ErrorCode.INVALID_SESSION_TIMEOUT,
    "Invalid session timeout": ErrorCode.INVALID_SESSION_TIMEOUT,
    "The metadata field of the offset request was too large": ErrorCode.OFFSET_METADATA_TOO_LARGE,
    "Offset metadata string too large": ErrorCode.OFFSET_METADATA_TOO_LARGE,
    "The committing offset data size is not valid": ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    "Inconsistent group protocol": ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    "Consumer group has reached maximum size": ErrorCode.GROUP_MAX_SIZE_REACHED,
    "Not authorized to access group": ErrorCode.GROUP_AUTHORIZATION_FAILED,
    "Group authorization failed": ErrorCode.GROUP_AUTHORIZATION_FAILED,
    "Not authorized to access topics": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "Topic authorization failed": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "Offset out of range": ErrorCode.OFFSET_OUT_OF_RANGE,
    "The requested offset is not within the range": ErrorCode.OFFSET_OUT_OF_RANGE,
    "supported protocols are incompatible with those of existing members": (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    ),
    "The consumer group has reached its max size": ErrorCode.GROUP_MAX_SIZE_REACHED,
    "The broker rejected this static consumer": ErrorCode.FENCED_INSTANCE_ID,
    # Sarama has sentences of its own, which changed over the years.
    "The requested offset is outside the range": ErrorCode.OFFSET_OUT_OF_RANGE,
    "Offset's topic has not yet been created": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "The broker is still loading offsets after a leader change": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    "The coordinator is still loading offsets": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    "Request was for a consumer group that is not coordinated by this broker": ErrorCode.NOT_COORDINATOR,
    "The provided member is not known in the current generation": ErrorCode.UNKNOWN_MEMBER_ID,
    "The provided generation id is not the current generation": ErrorCode.ILLEGAL_GENERATION,
    "A rebalance for the group is in progress": ErrorCode.REBALANCE_IN_PROGRESS,
    "group protocol type is incompatible with the other members": ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    "The provided session timeout is outside the allowed range": ErrorCode.INVALID_SESSION_TIMEOUT,
    "The provided commit metadata was too large": ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    "Specified a string larger than the configured maximum": ErrorCode.OFFSET_METADATA_TOO_LARGE,
    "The client is not authorized to access this topic": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "The client is not authorized to access this group": ErrorCode.GROUP_AUTHORIZATION_FAILED,
}
_NAMES: dict[str, ErrorCode] = {info(code).old_name or code.name: code for code in ErrorCode}
_NAMES |= ErrorCode.__members__
_NUMBERS = {code.value: code for code in ErrorCode if code is not ErrorCode.NONE}
_CLASSES: dict[str, ErrorCode] = {
    **{"".join(word.capitalize() for word in name.split("_")): code for name, code in _NAMES.items()},
    **_OTHER_CLASSES,
}
_SENTENCE = re.compile("|".join(map(re.escape, _SENTENCES)))


def error_in(text: str) -> ErrorCode | None:
    """The first error that a text names, or None. A cause beats what it caused: the last class counts."""
    for match in reversed(list(_CLASS.finditer(text))):
        if match[1] in _CLASSES:
            return _CLASSES[match[1]]
    for match in _NAME.finditer(text):
        if match[0] in _NAMES:
            return _NAMES[match[0]]
    for match in _NUMBER.finditer(text):
        if int(match[1]) in _NUMBERS:
            return _NUMBERS[int(match[1])]
    said = _SENTENCE.search(text)
    return _SENTENCES[said[0]] if said is not None else None
