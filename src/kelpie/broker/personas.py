"""The releases of Kafka that a lab can imitate: the API versions they advertise, and their behaviour.

The versions were read off real brokers (0.9.0.1 knows no ApiVersions; its column is what its protocol classes
hold). An API that the lab does not serve is not advertised.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kelpie.wire.apis import NAMES
from kelpie.wire.schema import Versions

_TABLE = """
Produce                       0-1   0-9    0-11   0-13
Fetch                         0-1   0-12   0-17   4-18
ListOffsets                   0     0-6    0-9    1-11
Metadata                      0     0-11   0-12   0-13
OffsetCommit                  0-2   0-8    0-9    2-10
OffsetFetch                   0-1   0-7    0-9    1-10
FindCoordinator               0     0-3    0-6    0-6
JoinGroup                     0     0-7    0-9    0-9
Heartbeat                     0     0-4    0-4    0-4
LeaveGroup                    0     0-4    0-5    0-5
SyncGroup                     0     0-5    0-5    0-5
DescribeGroups                0     0-5    0-5    0-6
ListGroups                    0     0-4    0-5    0-5
ApiVersions                   .     0-3    0-4    0-4
CreateTopics                  .     0-7    0-7    2-7
DeleteTopics                  .     0-6    0-6    1-6
DeleteRecords                 .     0-2    0-2    0-2
InitProducerId                .     0-4    0-5    0-5
OffsetForLeaderEpoch          .     0-4    0-4    2-4
AddPartitionsToTxn            .     0-3    0-5    0-5
AddOffsetsToTxn               .     0-3    0-4    0-4
EndTxn                        .     0-3    0-4    0-5
TxnOffsetCommit               .     0-3    0-4    0-5
DescribeConfigs               .     0-4    0-4    1-4
AlterConfigs                  .     0-2    0-2    0-2
DescribeLogDirs               .     0-2    0-4    1-5
CreatePartitions              .     0-3    0-3    0-3
DeleteGroups                  .     0-2    0-2    0-2
ElectLeaders                  .     0-2    0-2    0-2
IncrementalAlterConfigs       .     0-1    0-1    0-1
AlterPartitionReassignments   .     0      0      0-1
ListPartitionReassignments    .     0      0      0
OffsetDelete                  .     0      0      0
DescribeCluster               .     0      0-1    0-2
DescribeProducers             .     0      0      0
DescribeTransactions          .     .      0      0
ListTransactions              .     .      0-1    0-2
DescribeTopicPartitions       .     .      .      0
DescribeQuorum                .     .      .      0-2
"""

RELEASES = ("0.9", "2.8", "3.9", "4.3")
PRODUCE = 0


@dataclass(frozen=True, slots=True)
class Persona:
    """What a broker of this release says of itself, and how it behaves where releases differ."""

    name: str
    versions: Mapping[int, Versions]
    magic: int = 2
    """Of the record batches in its logs."""
    keeps_elr: bool = False
    """Since 4.0 the last members of an ISR stay eligible to lead when it becomes too small (KIP-966)."""
    creates_offsets_topic_short: bool = False
    """Up to 0.10 the offsets topic got fewer replicas than asked for where brokers were missing."""
    isr_of_leaderless: bool = False
    """Since 2.4 the metadata of a partition without a leader shows its ISR."""
    sync_while_loading: int = 14
    """2.0 to 3.x answer REBALANCE_IN_PROGRESS (27) on purpose, 4.x what it is (14), 0.9 NOT_COORDINATOR (16).
    """
    loading: int = 14
    """0.9 to 1.1 answer NOT_COORDINATOR (16) while a coordinator loads, later COORDINATOR_LOAD_IN_PROGRESS
    (14).
    """
    forwards_creation: bool = False
    """Which broker creates a topic that Metadata asks for. With ZooKeeper the broker itself: it knows the
    result and answers LEADER_NOT_AVAILABLE (5). With KRaft the controller: the broker answers
    UNKNOWN_TOPIC_OR_PARTITION (3).
    """
    strict_min_isr: bool = False
    """Since 3.7 nothing is committed while fewer than min.insync.replicas are in sync, and a partition that
    never had that many replicas is content with those it has (KIP-966).
    """
    knows_other_hosts: bool = True
    """Later than 0.9: a partition that another broker holds is not led here (6), no longer unknown (3)."""
    ignores_the_unknown: bool = False
    """0.9.0.x gives no answer to an API or version that it does not know, ApiVersions among them, and serves
    the connection on: its network thread fails before it can close. Later releases close.
    """
    commits_to_any_partition: bool = False
    """0.9 checks that the topic of a committed offset exists, not that the partition does."""
    refuses_unknown_times: bool = True
    """Since 3.0 (KIP-734) a negative time that the version of ListOffsets does not know is refused. Before,
    it was a time like any other, and every record is younger.
    """
    oldest_produce: int = 0
    """4.0 dropped Produce 0 to 2, but goes on to advertise them: librdkafka would compress nothing otherwise
    (KAFKA-18659). A client that sends them is cut off.
    """
    answers_commits_once: bool = True
    """Up to 3.9 a partition that is named twice in OffsetCommit is answered once."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Defaults of broker settings that are not those of Kafka 4."""

    def serves(self, api_key: int, version: int) -> bool:
        """Whether it answers: of what it advertises, all but the oldest Produce."""
        spoken = self.versions.get(api_key)
        if spoken is None or version not in spoken:
            return False
        return api_key != PRODUCE or version >= self.oldest_produce


_ANY_TIMESTAMP = {"log.message.timestamp.after.max.ms": str(2**63 - 1)}
_DIFFERENCES: dict[str, dict[str, Any]] = {
    "0.9": {
        "magic": 0,
        "creates_offsets_topic_short": True,
        "sync_while_loading": 16,
        "loading": 16,
        "knows_other_hosts": False,
        "ignores_the_unknown": True,
        "commits_to_any_partition": True,
        "refuses_unknown_times": False,
        "settings": {
            "group.max.session.timeout.ms": "30000",
            "offsets.retention.minutes": "1440",
            "replica.lag.time.max.ms": "10000",
            "unclean.leader.election.enable": "true",
            **_ANY_TIMESTAMP,
        },
    },
    "2.8": {
        "sync_while_loading": 27,
        "isr_of_leaderless": True,
        "refuses_unknown_times": False,
        "settings": _ANY_TIMESTAMP,
    },
    "3.9": {
        "sync_while_loading": 27,
        "isr_of_leaderless": True,
        "settings": _ANY_TIMESTAMP,
        "strict_min_isr": True,
    },
    "4.3": {
        "answers_commits_once": False,
        "keeps_elr": True,
        "isr_of_leaderless": True,
        "forwards_creation": True,
        "oldest_produce": 3,
        "strict_min_isr": True,
    },
}


@cache
def persona(name: str) -> Persona:
    """Raises ValueError for a release that the lab cannot imitate."""
    if name not in RELEASES:
        raise ValueError(f"no persona {name!r}; there are {', '.join(RELEASES)}")
    column = RELEASES.index(name) + 1
    keys = {api: key for key, api in NAMES.items()}
    rows = [line.split() for line in _TABLE.split("\n") if line]
    versions = {keys[row[0]]: Versions.parse(row[column]) for row in rows if row[column] != "."}
    return Persona(name=name, versions=versions, **_DIFFERENCES[name])
