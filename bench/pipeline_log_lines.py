"""A mixed log with known truth: brokers of several ages, Java clients, librdkafka, kafka-python and others.

One file, as a collector of logs writes it. A block of some megabytes is made of templates, with a fixed seed;
the log is this block again and again, an hour and a generation later each time. So how many events of each
kind are in it is known by counting templates. One line in fifty means something: more than in a quiet fleet,
less than in the middle of an incident.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from kelpie.observations import EventKind as Kind

BLOCK_LINES = 60_000
CLIENTS = 400
_HOUR, _EPOCH, _GENERATION = "2026-01-01 00", "1767225", "77000"
"""What each block has of its own: the hour, the second / 1000, the generation."""

_BROKER = "[{hour}:{clock},{ms:03}] {level} {text} ({logger})"
_PYTHON = "{hour}:{clock},{ms:03} {level} {logger} {text}"
_JAVA = "{hour}:{clock},{ms:03} [main] {level} {logger} - {text}"
_RDKAFKA = "%{digit}|{epoch}{number:03}.{ms:03}|{tag}|rdkafka#consumer-{c}| [thrd:main]: {text}"
_WHO = "[Consumer clientId=consumer-orders-{c}, groupId=orders-{g}] "

EVENTS = (
    # Kind of event, layout, logger or tag, message.
    (
        Kind.REBALANCE_STARTED,
        _BROKER,
        "kafka.coordinator.group.GroupCoordinator",
        "[GroupCoordinator 1]: Preparing to rebalance group orders-{g} in state PreparingRebalance with old "
        "generation {generation} (__consumer_offsets-{p}) (reason: removing member m-{c} on expiration)",
    ),
    (
        Kind.GENERATION_JOINED,
        _BROKER,
        "kafka.coordinator.group.GroupCoordinator",
        "[GroupCoordinator 1]: Stabilized group orders-{g} generation {generation} (__consumer_offsets-{p}) "
        "with 3 members",
    ),
    (
        Kind.GENERATION_JOINED,
        _BROKER,
        "kafka.coordinator.GroupCoordinator",
        "[GroupCoordinator 2]: Stabilized group orders-{g} generation {generation}",
    ),
    (
        Kind.MEMBER_EXPIRED,
        _BROKER,
        "kafka.coordinator.group.GroupCoordinator",
        "[GroupCoordinator 1]: Member consumer-orders-{c}-6d1b2c1e in group orders-{g} has failed, removing "
        "it from the group",
    ),
    (
        Kind.MEMBER_LEFT,
        _BROKER,
        "org.apache.kafka.coordinator.group.GroupMetadataManager",
        "[GroupCoordinator id=1 topic=__consumer_offsets partition={p}] [GroupId orders-{g}] Member m-{c} "
        "left the consumer group.",
    ),
    (
        Kind.JOINED,
        _BROKER,
        "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator",
        _WHO + "Successfully joined group with generation Generation{{generationId={generation}, "
        "memberId='m-{c}', protocol='range'}}",
    ),
    (Kind.JOINING, _JAVA, "o.a.k.c.c.internals.AbstractCoordinator", _WHO + "(Re-)joining group"),
    (
        Kind.ASSIGNED,
        _JAVA,
        "o.a.k.c.c.internals.ConsumerCoordinator",
        _WHO + "Adding newly assigned partitions: orders-{p}, payments-{p}",
    ),
    (
        Kind.COORDINATOR_LOST,
        _BROKER,
        "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator",
        _WHO
        + "Group coordinator broker-2.example.com:9092 (id: 2147483645 rack: null) is unavailable or invalid "
        "due to cause: coordinator unavailable. isDisconnected: false. Rediscovery will be attempted.",
    ),
    (
        Kind.COMMIT_FAILED,
        _BROKER,
        "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator",
        _WHO + "Offset commit failed on partition orders-{p} at offset {generation}: The coordinator is not "
        "aware of this member.",
    ),
    (
        Kind.POLL_INTERVAL_EXCEEDED,
        _RDKAFKA,
        "MAXPOLL",
        "Application maximum poll interval (300000ms) exceeded by {ms}ms (adjust max.poll.interval.ms for "
        "long-running message processing): leaving group",
    ),
    (
        Kind.JOINED,
        _RDKAFKA,
        "JOINGROUP",
        "JoinGroup response: GenerationId {generation}, Protocol range, LeaderId rdkafka-1, my MemberId "
        "rdkafka-{c}, member metadata count 0: (no error)",
    ),
    (
        Kind.HEARTBEAT_FAILED,
        _PYTHON,
        "kafka.coordinator",
        "Heartbeat failed for group orders-{g} because it is rebalancing",
    ),
    (
        Kind.JOINED,
        _PYTHON,
        "kafka.coordinator",
        "Successfully joined group orders-{g} <Generation {generation} (member_id: kafka-python-{c}, "
        "protocol: range)>",
    ),
)
NOISE = (
    (
        _BROKER,
        "org.apache.kafka.clients.FetchSessionHandler",
        _WHO
        + "Node 2 sent an incremental fetch response with throttleTimeMs = 0 for session {generation} with 0 "
        "response partition(s), 3 implied partition(s)",
    ),
    (
        _BROKER,
        "org.apache.kafka.clients.consumer.internals.AbstractFetch",
        _WHO + "Added READ_UNCOMMITTED fetch request for partition orders-{p} at position FetchPosition{{"
        "offset={generation}, offsetEpoch=Optional[5], currentLeader=LeaderAndEpoch{{leader=Optional["
        "broker-1.example.com:9092 (id: 1 rack: null)], epoch=5}}}} to node broker-1.example.com:9092",
    ),
    (_JAVA, "o.a.k.c.c.internals.AbstractCoordinator", _WHO + "Received successful Heartbeat response"),
    (
        _JAVA,
        "o.a.k.c.c.internals.ConsumerCoordinator",
        _WHO + "Committed offset {generation} for partition orders-{p}",
    ),
    (
        _BROKER,
        "kafka.log.LogCleaner",
        "Cleaner 0: Cleaning LogSegment(baseOffset={generation}, size=104857600) in log orders-{p} into 0 "
        "with deletion horizon 1767225600000, retaining deletes.",
    ),
    (
        _BROKER,
        "kafka.log.UnifiedLog",
        "[UnifiedLog partition=orders-{p}, dir=/data/kafka] Rolled new log "
        "segment at offset {generation} in {ms} ms.",
    ),
    (
        _BROKER,
        "kafka.server.ReplicaFetcherThread",
        "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] "
        "Truncating partition payments-{p} to local high watermark {generation}",
    ),
    (
        _BROKER,
        "kafka.request.logger",
        "Completed request:RequestHeader(apiKey=FETCH, apiVersion=15, clientId=consumer-orders-{c}, "
        "correlationId={generation}) -- FetchRequestData(maxWaitMs=500, minBytes=1) from connection "
        "10.0.0.1:9092-10.0.3.7:51112-8;totalTime:{ms}.1,requestQueueTime:0.04,localTime:0.2",
    ),
    (_RDKAFKA, "FETCH", "broker-1:9092/1: Fetch topic orders [{p}] at offset {generation} (leader epoch 5)"),
    (
        _RDKAFKA,
        "HEARTBEAT",
        'GroupCoordinator/2: Heartbeat for group "orders-{g}" generation id {generation}',
    ),
    (_RDKAFKA, "RECV", "broker-1:9092/1: Received FetchResponse (v11, {ms} bytes, CorrId {generation})"),
    (
        _PYTHON,
        "kafka.conn",
        "<BrokerConn node_id=1 host=broker-1:9092 <connected> [IPv4 ('10.0.0.1', 9092)]> "
        "Response {generation} ({ms} ms)",
    ),
    (_PYTHON, "orders.worker", "order {generation} of customer {c} was packed in {ms} ms"),
    (_JAVA, "com.example.orders.Pipeline", "Handled batch {generation} of 500 records, lag is falling"),
)
TRACES = (
    "java.util.concurrent.TimeoutException: no answer within {ms} ms",
    "org.apache.kafka.clients.consumer.CommitFailedException: Offset commit cannot be completed since the "
    "consumer is not part of an active group",
)
"""Every tenth is of Kafka's own: that one means a commit that failed."""
_FRAME = "\tat com.example.orders.Worker.step{n}(Worker.java:{m}) ~[orders-worker-2.1.jar:2.1]"
_LEVELS = ("INFO", "DEBUG", "WARN")


@dataclass
class Log:
    """What is in it."""

    lines: int = 0
    events: Counter[str] = field(default_factory=Counter)
    size: int = 0


def write(path: Path, size: int) -> Log:
    """A log of at least so many bytes."""
    block, lines, kinds = _block()
    log = Log()
    text = block.encode()
    with path.open("wb") as file:
        while log.size < size:
            number = log.lines // lines
            day, hour = divmod(number, 24)
            month, day = divmod(day, 28)
            fresh = (
                text.replace(_HOUR.encode(), f"2026-{1 + month:02}-{1 + day:02} {hour:02}".encode())
                .replace(f"|{_EPOCH}".encode(), f"|{int(_EPOCH) + 4 * number}".encode())
                .replace(_GENERATION.encode(), f"{int(_GENERATION) + number}".encode())
            )
            file.write(fresh)
            log.lines += lines
            log.events += kinds
            log.size += len(fresh)
    return log


def _block() -> tuple[str, int, Counter[str]]:
    random = Random(7)
    lines: list[str] = []
    kinds: Counter[str] = Counter()
    while len(lines) < BLOCK_LINES:
        what = random.random()
        if what < 0.021:
            kind, layout, logger, message = random.choice(EVENTS)
            kinds[kind.value] += 1
            lines.append(_line(random, layout, logger, message, len(lines)))
        elif what < 0.029:
            kafkas = random.random() < 0.1
            lines.append(_line(random, _JAVA, "com.example.orders.Worker", "A step failed", len(lines)))
            lines.append(TRACES[kafkas].format(ms=random.randrange(1000)))
            frames = range(random.randrange(8, 24))
            lines += [_FRAME.format(n=n, m=random.randrange(900)) for n in frames]
            kinds[Kind.COMMIT_FAILED.value] += kafkas
        else:
            layout, logger, message = random.choice(NOISE)
            lines.append(_line(random, layout, logger, message, len(lines)))
    return "\n".join(lines) + "\n", len(lines), kinds


def _line(random: Random, layout: str, logger: str, message: str, number: int) -> str:
    client = random.randrange(CLIENTS)
    values = {
        "c": client,
        "g": client // 4,
        "p": random.randrange(50),
        "ms": random.randrange(1000),
        "generation": _GENERATION,
    }
    second = number * 3600 // (BLOCK_LINES + 200)
    text: Callable[..., str] = layout.format
    return text(
        hour=_HOUR,
        clock=f"{second // 60:02}:{second % 60:02}",
        level=random.choice(_LEVELS),
        logger=logger,
        tag=logger,
        digit=random.choice("4567"),
        epoch=_EPOCH,
        number=number * 1000 // (BLOCK_LINES + 200),
        text=message.format(**values),
        **{name: values[name] for name in ("c", "ms")},
    )
