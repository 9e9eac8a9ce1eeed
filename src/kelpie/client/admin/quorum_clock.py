"""The time of the leader of the controllers' quorum: the only clock that Kafka tells anybody (KRaft, 3.3 on).

DescribeQuorum says of each controller when it was last caught up. Of the leader itself, it says the leader's
present time. That needs the right to describe the cluster; without it, or with ZooKeeper, no row is added.
"""

from kelpie.client.admin.asking import Asking
from kelpie.client.client_errors import ClientError
from kelpie.observations import ClockReading
from kelpie.wire.api.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData

_TELLS_TIMES = 1
_METADATA_LOG = "__cluster_metadata"
_LIMIT_S = 5.0
"""Without a leader of the quorum, the broker waits for one."""


async def read_quorum_clock(asking: Asking) -> None:
    request = DescribeQuorumRequest(
        topics=[
            RequestTopicData(topic_name=_METADATA_LOG, partitions=[RequestPartitionData(partition_index=0)])
        ]
    )
    for node in asking.reached[:1]:
        if not asking.versions[node].speaks(DescribeQuorumRequest, at_least=_TELLS_TIMES):
            return
        limit_s = min(_LIMIT_S, asking.nodes.settings.request_timeout_s)
        sent = asking.clock()
        try:
            # Not by `asking.ask`: a broker that cannot reach the controllers is not silent in all else.
            response = await asking.nodes.ask(node, request, None, limit_s)
        except ClientError:
            return
        at, source = asking.clock(), asking.source(node)
        asking.seen.clocks += [
            ClockReading(voter.replica_id, voter.last_caught_up_timestamp, sent, at, source)
            for topic in response.topics
            for partition in topic.partitions
            if not partition.error_code
            for voter in partition.current_voters
            if voter.replica_id == partition.leader_id and voter.last_caught_up_timestamp > 0
        ]
