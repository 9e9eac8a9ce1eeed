"""DescribeLogDirs: sizes of the replicas on this broker. It has one directory, and that is memory."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api import describe_log_dirs as wire

FOLDER = "/lab"


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.DescribeLogDirsRequest = call.message
    asked = None if request.topics is None else {topic.topic: topic.partitions for topic in request.topics}
    topics: dict[str, list[wire.DescribeLogDirsPartition]] = {}
    for partition, replica in broker.replicas.items():
        if asked is None or partition.partition in asked.get(partition.topic, ()):
            topics.setdefault(partition.topic, []).append(
                wire.DescribeLogDirsPartition(
                    partition_index=partition.partition,
                    partition_size=replica.log.size,
                    offset_lag=0,
                    is_future_key=False,
                )
            )
    result = wire.DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=FOLDER,
        topics=[wire.DescribeLogDirsTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )
    call.answer(wire.DescribeLogDirsResponse(results=[result]))
