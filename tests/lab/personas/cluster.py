"""A cluster under test, of the lab or of real Kafka, with the versions that its clients speak."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from kelpie.lab import SyncCluster
from kelpie.model.partitioning import partition_for
from kelpie.real.cluster import RealCluster
from kelpie.wire.api.describe_groups import DescribeGroupsRequest
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from tests.lab.personas.client import LIMIT_S, Client
from tests.lab.personas.transcript import Transcript

TOPIC = "letters"
OFFSETS_TOPIC = "__consumer_offsets"
OFFSETS_PARTITIONS = 5

_NEWEST = {
    "0.9": "Join 0 Sync 0 Heartbeat 0 Leave 0 Commit 2 FetchOffsets 1 Find 0 Describe 0 List 0",
    "2.8": "Join 7 Sync 5 Heartbeat 4 Leave 4 Commit 8 FetchOffsets 7 Find 3 Describe 5 List 4",
    "3.9": "Join 9 Sync 5 Heartbeat 4 Leave 5 Commit 9 FetchOffsets 9 Find 6 Describe 5 List 5",
    "4.3": "Join 9 Sync 5 Heartbeat 4 Leave 5 Commit 9 FetchOffsets 9 Find 6 Describe 6 List 5",
}


def newest(persona: str) -> dict[str, int]:
    """The version of each API that the newest clients of the release used."""
    words = _NEWEST[persona].split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def group_on(partition: int, partitions: int = OFFSETS_PARTITIONS, stem: str = "group") -> str:
    """The name of a group whose coordinator leads this partition."""
    names = (f"{stem}-{number}" for number in range(100_000))
    return next(name for name in names if partition_for(name, partitions) == partition)


@dataclass
class Cluster:
    persona: str
    kind: str
    brokers: SyncCluster | RealCluster
    group: str
    """A group of this test's own."""
    versions: dict[str, int]
    _open: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.ports = [int(address.split(":")[1]) for address in self.brokers.bootstrap_servers.split(",")]
        self.transcript = Transcript({port: node for node, port in enumerate(self.ports)})

    @property
    def is_first(self) -> bool:
        """Kafka 0.9, the first release with groups."""
        return self.persona == "0.9"

    def client(self, client_id: str = "client", node: int = 0) -> Client:
        return self._open.enter_context(Client(self.ports[node], self.transcript, client_id))

    def close(self) -> None:
        self._open.close()

    def until(self, look: Callable[[], Any], wanted: Callable[[Any], object] = bool) -> Any:
        """Looks again until it is as wanted."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            seen = look()
            if wanted(seen):
                return seen
            assert time.monotonic() < deadline, f"still {seen} after {LIMIT_S} s"
            time.sleep(0.01)

    def warm_up(self, partitions: int = OFFSETS_PARTITIONS) -> None:
        """The internal topic is there, its partitions are loaded, and so is a topic to commit to."""
        with Client(self.ports[0], self.transcript) as client:
            find = FindCoordinatorRequest(key="")
            self.until(lambda: client.peek(find, 0), lambda found: found.error_code == 0)
            self.has_topic(TOPIC, client)
        self.warm_up_everywhere(partitions)

    def warm_up_everywhere(self, partitions: int, nodes: Sequence[int] | None = None) -> None:
        """Each partition of the internal topic is loaded by one of these brokers (counted from 1)."""
        groups = {group_on(partition, partitions) for partition in range(partitions)}

        def loaded() -> set[str]:
            found: set[str] = set()
            for node in nodes or range(1, len(self.ports) + 1):
                with Client(self.ports[node - 1], self.transcript) as client:
                    answer = client.peek(DescribeGroupsRequest(groups=sorted(groups)), 0)
                    found |= {group.group_id for group in answer.groups if group.error_code == 0}
            return found

        self.until(loaded, lambda found: found == groups)

    def has_topic(self, name: str, client: Client) -> None:
        """By asking for it: every one of these releases creates what it is asked for."""
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])

        def there(answer: Any) -> bool:
            (topic,) = answer.topics
            return topic.error_code == 0 and all(each.leader_id >= 0 for each in topic.partitions)

        self.until(lambda: client.peek(asked, 0), there)
