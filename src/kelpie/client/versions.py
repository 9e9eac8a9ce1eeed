"""Which versions of which APIs a broker speaks, and which of them to use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kelpie.client.client_errors import Unsupported
from kelpie.questions.question import Question
from kelpie.wire.api.api_versions import ApiVersionsResponse
from kelpie.wire.apis import NAMES
from kelpie.wire.schema import declaration_of

Range = tuple[int, int]
_METADATA, _BROKER_REGISTRATION = 3, 62


@dataclass(frozen=True, slots=True)
class BrokerVersions:
    """What one broker told about itself, or, where it tells nothing, what its release is known to speak."""

    ranges: Mapping[int, Range]
    broker: str = "the broker"
    """How errors name it."""
    told: bool = True
    """Whether the broker said so itself; before 0.10 it cannot."""

    @property
    def is_controller(self) -> bool:
        """A controller of KRaft takes registrations of brokers, and has no metadata for clients."""
        return self.told and _METADATA not in self.ranges and _BROKER_REGISTRATION in self.ranges

    def pick(self, request: type[Any], at_most: int | None = None, at_least: int = 0) -> int:
        """The newest version that both sides speak. Raises Unsupported."""
        declared = declaration_of(request)
        key = declared.api_key
        assert key is not None, f"{request.__name__} is no request"
        spoken = self.ranges.get(key)
        if spoken is None and self.is_controller:
            raise Unsupported(
                f"{self.broker} is a controller of the cluster (KRaft), which answers no clients. Give the "
                "address of a broker: one of its listeners, not of controller.quorum."
            )
        if spoken is None:
            raise Unsupported(
                f"{self.broker} does not know {NAMES[key]}; its release is older than that request."
            )
        last = spoken[1]
        if declared.versions.last is not None:
            last = min(last, declared.versions.last)
        if at_most is not None:
            last = min(last, at_most)
        if last < max(spoken[0], declared.versions.first, at_least):
            raise Unsupported(
                f"{self.broker} speaks {NAMES[key]} in versions {spoken[0]} to {spoken[1]}, and none of "
                f"them will do here (needed: {max(at_least, declared.versions.first)} to "
                f"{declared.versions.last if at_most is None else at_most})."
            )
        return last

    def pick_for(self, question: Question[Any], oldest: int = 0) -> int:
        """The newest version that can carry a question, and none before `oldest`. Raises Unsupported."""
        return self.pick(question.api, at_most=question.newest, at_least=max(oldest, question.oldest))

    def speaks(self, request: type[Any], at_least: int = 0) -> bool:
        """Whether `pick` would find a version."""
        try:
            self.pick(request, at_least=at_least)
        except Unsupported:
            return False
        return True

    @classmethod
    def told_by(cls, response: ApiVersionsResponse, broker: str) -> "BrokerVersions":
        ranges = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
        return cls(ranges, broker)


def before_api_versions(broker: str) -> BrokerVersions:
    """What Kafka 0.9 speaks. It knows no ApiVersions, and leaves what it does not know without an answer."""
    return BrokerVersions(_KAFKA_0_9, broker, told=False)


def of_kafka_0_8(broker: str) -> BrokerVersions:
    """What clients of Kafka 0.8 read and write with, in the versions that 0.8.2 speaks."""
    return BrokerVersions(_KAFKA_0_8, broker, told=False)


_KAFKA_0_8: dict[int, Range] = {
    0: (0, 0),  # Produce
    1: (0, 0),  # Fetch
    2: (0, 0),  # ListOffsets
    3: (0, 0),  # Metadata
}
_KAFKA_0_9: dict[int, Range] = {
    0: (0, 1),  # Produce
    1: (0, 1),  # Fetch
    2: (0, 0),  # ListOffsets
    3: (0, 0),  # Metadata
    8: (0, 2),  # OffsetCommit
    9: (0, 1),  # OffsetFetch
    10: (0, 0),  # FindCoordinator
    11: (0, 0),  # JoinGroup
    12: (0, 0),  # Heartbeat
    13: (0, 0),  # LeaveGroup
    14: (0, 0),  # SyncGroup
    15: (0, 0),  # DescribeGroups
    16: (0, 0),  # ListGroups
}
