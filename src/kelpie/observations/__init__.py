"""What was seen of a cluster and its groups: by a survey, in the offsets topic, in files. No judgement yet.

Everything that can be observed becomes one of these rows; `Observations` holds them all, and the doctor
makes cases of them. Every row says when it was true (`at`, None if unknown) and where it is from (`source`,
as a person would look it up: "broker 1 (10.0.0.1:9092)", "clients/app.log:42",
"segments/broker-2/__consumer_offsets-25/00000000000000000000.log@1204").

Rows that come by the hundred thousand are tuples, the others dataclasses. All are immutable.
"""

from kelpie.observations.cluster import (
    OFFSETS_TOPIC,
    BrokerView,
    Certificate,
    ClockReading,
    CoordinatorAnswer,
    PartitionView,
    Setting,
    TopicView,
    Trouble,
    Unasked,
)
from kelpie.observations.collection import Observations
from kelpie.observations.events import Event, EventKind
from kelpie.observations.groups import Generation, GroupRemoved, GroupState, Illness, Listing, Member
from kelpie.observations.mappings import MappingListing, MappingNode
from kelpie.observations.positions import (
    Commit,
    Committed,
    LeaderEpochEnd,
    LogEnds,
    LogSize,
    OpenTransaction,
    PendingCommit,
)
from kelpie.observations.traffic import MalformedSeries, Scrape, TrafficSeries
from kelpie.observations.zookeeper_groups import OwnerNode, Registration, ZooKeeperGroup

__all__ = [
    "OFFSETS_TOPIC",
    "BrokerView",
    "Certificate",
    "ClockReading",
    "Commit",
    "Committed",
    "CoordinatorAnswer",
    "Event",
    "EventKind",
    "Generation",
    "GroupRemoved",
    "GroupState",
    "Illness",
    "LeaderEpochEnd",
    "Listing",
    "LogEnds",
    "LogSize",
    "MalformedSeries",
    "MappingListing",
    "MappingNode",
    "Member",
    "Observations",
    "OpenTransaction",
    "OwnerNode",
    "PartitionView",
    "PendingCommit",
    "Registration",
    "Scrape",
    "Setting",
    "TopicView",
    "TrafficSeries",
    "Trouble",
    "Unasked",
    "ZooKeeperGroup",
]
