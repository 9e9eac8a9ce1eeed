"""DescribeQuorum: the controllers' quorum. The lab has one controller, which is always caught up.

Of the leader itself, Kafka tells the leader's present time as the time when it was last caught up.
"""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api import describe_quorum as wire

_METADATA_LOG = "__cluster_metadata"


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.DescribeQuorumRequest = call.message
    call.answer(
        wire.DescribeQuorumResponse(
            error_code=ErrorCode.NONE,
            topics=[
                wire.ResponseTopicData(
                    topic_name=topic.topic_name,
                    partitions=[
                        _partition(broker, topic.topic_name, partition.partition_index, now)
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )
    )


def _partition(broker: Broker, topic: str, index: int, now: Instant) -> wire.ResponsePartitionData:
    is_known = (topic, index) == (_METADATA_LOG, 0)
    leader = broker.image.controller_id
    voter = wire.QuorumReplica(
        replica_id=leader, log_end_offset=0, last_fetch_timestamp=now, last_caught_up_timestamp=now
    )
    return wire.ResponsePartitionData(
        partition_index=index,
        error_code=ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        leader_id=leader if is_known else -1,
        leader_epoch=0,
        high_watermark=0,
        current_voters=[voter] if is_known else [],
        observers=[],
    )
