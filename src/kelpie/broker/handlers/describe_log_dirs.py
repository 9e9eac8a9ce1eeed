"""DescribeLogDirs: sizes of the replicas on this broker. It has one directory, and that is memory."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

FOLDER = "/lab"


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: DescribeLogDirsRequest = call.message
    asked = None if request.topics is None else {topic.topic: topic.partitions for topic in request.topics}
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition, replica in broker.replicas.items():
        if asked is None or partition.partition in asked.get(partition.topic, ()):
            topics.setdefault(partition.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=partition.partition,
                    partition_size=replica.log.size,
                    offset_lag=0,
                    is_future_key=False,
                )
            )
    result = DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=FOLDER,
        topics=[DescribeLogDirsTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )
    call.answer(DescribeLogDirsResponse(results=[result]))
