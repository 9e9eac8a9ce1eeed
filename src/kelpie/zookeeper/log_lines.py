"""Steps as Kafka 0.8.2.2 logs them: the lines of its own log, with its loggers and its spelling.

For logs of labs and tests, which the readers of real logs then read. A step that 0.8 does not log has none.
"""

from datetime import UTC, datetime
from typing import NamedTuple

from kelpie.model.time import Instant
from kelpie.zookeeper.steps import (
    AttemptBegan,
    AttemptBroken,
    AttemptEnded,
    Cause,
    Claimed,
    ClaimTrusted,
    Closed,
    Closing,
    Conflict,
    FetchersStopped,
    NoBrokers,
    OffsetsCommitted,
    OwnersReleased,
    RebalanceFailed,
    RecordedStep,
    Registered,
    Registering,
    RegistrationWaits,
    SessionBegan,
    Step,
    TopicAssigned,
    TopicsChosen,
    Triggered,
)

_CONNECTOR = "kafka.consumer.ZookeeperConsumerConnector"
_ASSIGNOR = "kafka.consumer.RangeAssignor"
_ZK_UTILS = "kafka.utils.ZkUtils$"
_FETCHERS = "kafka.consumer.ConsumerFetcherManager"

_CACHE_CLEARED = (
    "Rebalancing attempt failed. Clearing the cache before the next rebalancing operation is triggered"
)


class LogLine(NamedTuple):
    level: str
    logger: str
    text: str
    exception: str = ""
    """The line after it: an exception's class and message."""


def log_lines(step: Step, consumer_id: str) -> list[LogLine]:
    """The lines of one step, as INFO unless said."""
    match step:
        case SessionBegan(is_first=False):
            what = f"ZK expired; release old broker parition ownership; re-register consumer {consumer_id}"
            return [_own(consumer_id, what)]
        case Registering():
            return [_own(consumer_id, f"begin registering consumer {consumer_id} in ZK")]
        case Registered():
            return [_own(consumer_id, f"end registering consumer {consumer_id} in ZK")]
        case RegistrationWaits(path, stored):
            what = (
                f"I wrote this conflicted ephemeral node [{stored}] at {path} a while back in a different "
                "session, hence I will backoff for this node to be deleted by Zookeeper and retry"
            )
            return [LogLine("INFO", _ZK_UTILS, what)]
        case Triggered(Cause.PARTITIONS, path, value):
            what = f"Topic info for path {path} changed to {value}, triggering rebalance"
            return [_own(consumer_id, what)]
        case TopicsChosen(is_event=True):
            return _topics(step, consumer_id)
        case RebalanceFailed():
            return [_failure(step, consumer_id)]
        case Closing():
            return [_own(consumer_id, "ZKConsumerConnector shutting down")]
        case Closed(elapsed_ms):
            return [_own(consumer_id, f"ZKConsumerConnector shutdown completed in {elapsed_ms} ms")]
        case _:
            return _of_attempt(step, consumer_id)


def written(recorded: RecordedStep, consumer_id: str) -> str:
    """The lines of a recorded step, each with its end."""
    return "".join(written_line(line, recorded.at) for line in log_lines(recorded.step, consumer_id))


def written_line(line: LogLine, at: Instant) -> str:
    """As log4j writes it with Kafka's layout, with its end."""
    time = datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    exception = f"{line.exception}\n" if line.exception else ""
    return f"[{time}] {line.level} {line.text} ({line.logger})\n{exception}"


def _of_attempt(step: Step, consumer_id: str) -> list[LogLine]:
    match step:
        case AttemptBegan(number):
            return [_own(consumer_id, f"begin rebalancing consumer {consumer_id} try #{number}")]
        case NoBrokers():
            return [_own(consumer_id, "no brokers found when trying to rebalance.", "WARN")]
        case FetchersStopped():
            stops = ("Stopping leader finder thread", "Stopping all fetchers", "All connections stopped")
            return [
                *(LogLine("INFO", _FETCHERS, f"[ConsumerFetcherManager-0] {what}") for what in stops),
                _own(consumer_id, "Cleared all relevant queues for this fetcher"),
                _own(consumer_id, "Cleared the data chunks in all the consumer message iterators"),
            ]
        case OffsetsCommitted(at_rebalance=True):
            return [_own(consumer_id, "Committing all offsets after clearing the fetcher queues")]
        case OwnersReleased():
            return [_own(consumer_id, "Releasing partition ownership")]
        case TopicAssigned():
            return _assigned(step, consumer_id)
        case Claimed(partition, thread):
            return [_owned(consumer_id, thread, partition.topic, partition.partition)]
        case ClaimTrusted(path, partition, thread):
            what = f"{path} exists with value {thread} during connection loss; this is ok"
            owned = _owned(consumer_id, thread, partition.topic, partition.partition)
            return [LogLine("INFO", _ZK_UTILS, what), owned]
        case Conflict(path, partition, thread, stored):
            what = f"conflict in {path} data: {thread} stored data: {'null' if stored is None else stored}"
            waits = f"waiting for the partition ownership to be deleted: {partition.partition}"
            return [LogLine("INFO", _ZK_UTILS, what), _own(consumer_id, waits)]
        case AttemptBroken(reason):
            exception = f"org.I0Itec.zkclient.exception.ZkNoNodeException: {reason}"
            return [_own(consumer_id, "exception during rebalance ")._replace(exception=exception)]
        case AttemptEnded():
            return _ended(step, consumer_id)
        case _:
            return []


def _ended(step: AttemptEnded, consumer_id: str) -> list[LogLine]:
    ends = _own(consumer_id, f"end rebalancing consumer {consumer_id} try #{step.number}")
    if not step.succeeded:
        return [ends, _own(consumer_id, _CACHE_CLEARED)]
    selected = ",".join(
        f"{partition.topic}:{partition.partition}: fetched offset = {offset}: consumed offset = {offset}"
        for partition, offset in sorted(step.positions.items())
    )
    return [_own(consumer_id, f"Consumer {consumer_id} selected partitions : {selected}"), ends]


def _assigned(step: TopicAssigned, consumer_id: str) -> list[LogLine]:
    partitions = ", ".join(map(str, step.partitions))
    threads = ", ".join(step.threads)
    lines = [
        LogLine(
            "INFO",
            _ASSIGNOR,
            f"Consumer {consumer_id} rebalancing the following partitions: ArrayBuffer({partitions}) "
            f"for topic {step.topic} with consumers: List({threads})",
        )
    ]
    for thread, numbers in step.mine:
        lines += [
            LogLine("INFO", _ASSIGNOR, f"{thread} attempting to claim partition {number}")
            for number in numbers
        ]
        if not numbers:
            what = f"No broker partitions consumed by consumer thread {thread} for topic {step.topic}"
            lines.append(LogLine("WARN", _ASSIGNOR, what))
    return lines


def _topics(step: TopicsChosen, consumer_id: str) -> list[LogLine]:
    changes = {"added": step.added, "deleted": step.deleted}
    return [
        *(
            _own(consumer_id, f"Topic event: {how} topics = List({', '.join(topics)})")
            for how, topics in changes.items()
            if topics
        ),
        _own(consumer_id, f"Topics to consume = List({', '.join(step.topics)})"),
    ]


def _failure(step: RebalanceFailed, consumer_id: str) -> LogLine:
    """Where the exception ends up depends on the thread that rebalanced."""
    exception = (
        "kafka.common.ConsumerRebalanceFailedException: "
        f"{consumer_id} can't rebalance after {step.attempts} retries"
    )
    listener = f"{_CONNECTOR}$ZKSessionExpireListener@0"
    match step.cause:
        case Cause.START:
            logger, what = "kafka.tools.ConsoleConsumer$", "Error processing message, stopping consumer: "
        case Cause.SESSION:
            logger = "org.I0Itec.zkclient.ZkEventThread"
            what = f"Error handling event ZkEvent[New session event sent to {listener}]"
        case Cause.TOPICS:
            logger = "kafka.consumer.ZookeeperTopicEventWatcher"
            what = "error in handling child changes"
        case _:
            logger, what = _CONNECTOR, f"[{consumer_id}], error during syncedRebalance"
    return LogLine("ERROR", logger, what, exception)


def _own(consumer_id: str, text: str, level: str = "INFO") -> LogLine:
    return LogLine(level, _CONNECTOR, f"[{consumer_id}], {text}")


def _owned(consumer_id: str, thread: str, topic: str, partition: int) -> LogLine:
    return _own(consumer_id, f"{thread} successfully owned partition {partition} for topic {topic}")
