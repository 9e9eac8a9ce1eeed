"""Logs, and batches to write to them."""

from kelpie.broker.log import Appended, AppendRefusal, LogConfig, ReadResult, ReplicaLog
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.records import Codec, Record, read_all_records, write_batch

T = 1_700_000_000_000
CONFIG = LogConfig()


def new_log(start_offset: int = 0) -> ReplicaLog:
    log = ReplicaLog(TopicPartition("orders", 0), start_offset)
    log.begin_epoch(0)
    return log


def keyed(*pairs: tuple[bytes | None, bytes | None], timestamp: int = T) -> list[Record]:
    return [Record(offset, timestamp, key=key, value=value) for offset, (key, value) in enumerate(pairs)]


def sent(
    records: int | list[Record] = 1,
    *,
    timestamp: int = T,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] | None = None,
    transactional: bool = False,
) -> bytes:
    """A batch as a client sends it. `producer`: id, epoch, sequence number."""
    if isinstance(records, int):
        records = keyed(*((b"k%d" % n, b"v%d" % n) for n in range(records)), timestamp=timestamp)
    producer_id, epoch, sequence = producer or (-1, -1, -1)
    return write_batch(
        records,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


def append(
    log: ReplicaLog,
    data: bytes | None = None,
    *,
    epoch: int | None = None,
    now: int = T,
    config: LogConfig = CONFIG,
    produce_version: int = 13,
) -> Appended:
    appended = log.append_as_leader(
        sent() if data is None else data,
        leader_epoch=log.last_epoch if epoch is None else epoch,
        now=now,
        config=config,
        produce_version=produce_version,
    )
    assert isinstance(appended, Appended), appended
    return appended


def refused(log: ReplicaLog, data: bytes, config: LogConfig = CONFIG, **more: object) -> ErrorCode:
    end, size = log.end_offset, log.size
    refusal = log.append_as_leader(data, leader_epoch=0, now=T, config=config, **more)  # type: ignore[arg-type]
    assert isinstance(refusal, AppendRefusal), refusal
    assert refusal.reason
    assert (log.end_offset, log.size) == (end, size), "a refused append leaves no trace"
    return refusal.error_code


def marker(
    log: ReplicaLog,
    producer_id: int,
    *,
    committed: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    version: int = 1,
) -> Appended | AppendRefusal:
    return log.append_control(
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        committed=committed,
        leader_epoch=log.last_epoch,
        now=T,
        transaction_version=version,
    )


def read(log: ReplicaLog, offset: int, max_bytes: int = 1 << 30, *, upto: int | None = None) -> ReadResult:
    result = log.read(offset, max_bytes, upto=log.end_offset if upto is None else upto)
    assert isinstance(result, ReadResult), result
    return result


def contents(log: ReplicaLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Every record that clients wrote, control records aside."""
    return [
        (record.offset, record.key, record.value)
        for batch in log.batches_from(log.start_offset)
        for record in read_all_records(batch.data)
    ]
