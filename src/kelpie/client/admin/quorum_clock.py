"""The time of the leader of the controllers' quorum: the only clock that Kafka tells anybody (KRaft, 3.3 on).

DescribeQuorum says of each controller when it was last caught up. Of the leader itself, it says the leader's
present time. Brokers fetch from the leader all the time, and it says when each did so last: of a broker that
cannot be reached, that tells for how long. The leader forgets a broker after five minutes.

All of it needs the right to describe the cluster; without it, or with ZooKeeper, no row is added.
"""

from kelpie.client.admin.asking import Asking
from kelpie.client.client_errors import ClientError
from kelpie.model.time import Instant, plausible
from kelpie.observations import BrokerView, ClockReading
from kelpie.observations.presence import QUORUM
from kelpie.wire.api.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)

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
        for topic in response.topics:
            for partition in topic.partitions:
                if not partition.error_code:
                    _note(asking, partition, sent, at, source)


def _note(asking: Asking, partition: ResponsePartitionData, sent: Instant, at: Instant, source: str) -> None:
    leader = next((each for each in partition.current_voters if each.replica_id == partition.leader_id), None)
    told = plausible(leader.last_caught_up_timestamp) if leader is not None else None
    if leader is None or not told:
        return
    asking.seen.clocks.append(ClockReading(leader.replica_id, told, sent, at, source))
    asking.seen.brokers += [
        BrokerView(each.replica_id, at=at - (told - each.last_fetch_timestamp), source=QUORUM)
        for each in (*partition.current_voters, *partition.observers)
        if each.replica_id not in asking.reached and (plausible(each.last_fetch_timestamp) or 0) > 0
    ]
