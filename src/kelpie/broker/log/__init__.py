"""One replica's log, in memory: `ReplicaLog`. Time is an argument, and nothing here reads or writes a file.

    log = ReplicaLog(TopicPartition("orders", 0))
    log.partition, log.start_offset, log.end_offset, log.size, log.last_epoch, log.epochs, log.segments

As a leader (a mistake of the client is returned as `AppendRefusal(error_code, reason, record_errors)`):

    log.begin_epoch(leader_epoch)
    log.append_as_leader(records, *, leader_epoch, now, config=LogConfig(), origin="client",
                         produce_version=LATEST_PRODUCE, verify=False, guard=None) -> Appended | AppendRefusal
    log.append_batch(data, *, leader_epoch, now, config=LogConfig()) -> Appended | AppendRefusal
    log.append_control(*, producer_id, producer_epoch, coordinator_epoch, committed, leader_epoch, now,
                       config=LogConfig(), transaction_version=1) -> Appended | AppendRefusal
    log.begin_verification(producer_id, producer_epoch, sequence, *, supports_epoch_bump=False)
                       -> VerificationGuard | None             # None: the transaction is open, nothing to ask

As a follower:

    log.append_as_follower(batches, *, now=None, config=LogConfig(), leader_epoch=None) -> int   # bytes taken
    log.truncate_to(offset) -> bool
    log.reset_to(offset)                                        # drop everything, begin anew at offset
    log.truncate_to_epoch(leader_epoch, end_offset, *, high_watermark=None) -> bool
                                                                # one step of KIP-101; True once aligned
    log.divergence(fetch_offset, last_fetched_epoch) -> LogEpochEnd | AppendRefusal | None  # by the leader

For readers:

    log.read(offset, max_bytes, *, upto, at_least_one=True, cut=False) -> ReadResult | AppendRefusal
    log.batches_from(offset, max_bytes=None, *, upto=None) -> list[StoredBatch]
    log.end_offset_for_epoch(epoch) -> LogEpochEnd(epoch, end_offset)      # (-1, -1) when it is not known
    log.epoch_at(offset) -> int                                         # -1 when it is not known
    log.offset_for_timestamp(timestamp, upto) -> FoundOffset(timestamp, offset, leader_epoch) | None
    log.max_timestamp_offset(upto=None) -> FoundOffset | None
    log.last_stable_offset(high_watermark) -> int
    log.first_open_transaction -> int | None
    log.aborted_between(first, last) -> list[tuple[producer_id, first_offset]]        # last is exclusive
    log.producers() -> list[ProducerEntry]
    down_convert(data, magic, first_offset=0) -> bytes | AppendRefusal

Upkeep:

    log.delete_before(offset) -> bool
    log.roll(now) -> bool
    log.retain(config, now, high_watermark) -> int                      # segments deleted
    log.compact(config, now, high_watermark, *, force=False) -> Compacted | None
    log.expire_producers(now, expiration_ms) -> int

`StoredBatch` is what replicas share: bytes and what must be known of them. `parse_batches(data)` makes them
from bytes. `LogConfig.of(mapping)` reads a topic's settings by Kafka's names.
"""

from kelpie.broker.log.admission import LATEST_PRODUCE
from kelpie.broker.log.batch import Appended, AppendRefusal, ReadResult, StoredBatch, parse_batches
from kelpie.broker.log.cleaner import Compacted
from kelpie.broker.log.config import LogConfig
from kelpie.broker.log.conversion import down_convert
from kelpie.broker.log.epochs import LogEpochEnd
from kelpie.broker.log.producers import ProducerEntry, VerificationGuard
from kelpie.broker.log.replica_log import ReplicaLog
from kelpie.broker.log.timestamps import FoundOffset, SpecialTimestamp

__all__ = [
    "LATEST_PRODUCE",
    "AppendRefusal",
    "Appended",
    "Compacted",
    "FoundOffset",
    "LogConfig",
    "LogEpochEnd",
    "ProducerEntry",
    "ReadResult",
    "ReplicaLog",
    "SpecialTimestamp",
    "StoredBatch",
    "VerificationGuard",
    "down_convert",
    "parse_batches",
]
