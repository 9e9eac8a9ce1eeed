"""The APIs that Kelpie speaks, by key. An API's module is imported when it is first asked for.

Requests between brokers, and those that read and acknowledge records of share groups, are not among them.
"""

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from kelpie.wire.schema import Versions, declaration_of

NAMES: dict[int, str] = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    34: "AlterReplicaLogDirs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    42: "DeleteGroups",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    47: "OffsetDelete",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    55: "DescribeQuorum",
    57: "UpdateFeatures",
    60: "DescribeCluster",
    61: "DescribeProducers",
    64: "UnregisterBroker",
    65: "DescribeTransactions",
    66: "ListTransactions",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    74: "ListConfigResources",
    75: "DescribeTopicPartitions",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    80: "AddRaftVoter",
    81: "RemoveRaftVoter",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
}


@dataclass(frozen=True, slots=True)
class Api:
    key: int
    name: str
    request: type[Any]
    response: type[Any]
    versions: Versions
    flexible: Versions | None

    def is_flexible(self, version: int) -> bool:
        return self.flexible is not None and version in self.flexible


def module_name(name: str) -> str:
    """ListOffsets lives in list_offsets.py."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


@cache
def api(key: int) -> Api:
    """Raises KeyError for an API that Kelpie does not speak."""
    name = NAMES[key]
    module = import_module(f"kelpie.wire.api.{module_name(name)}")
    request: type[Any] = getattr(module, f"{name}Request")
    response: type[Any] = getattr(module, f"{name}Response")
    declared = declaration_of(request)
    return Api(key, name, request, response, declared.versions, declared.flexible)
