"""One replica's log, in memory: `ReplicaLog`. Time is an argument, and nothing here reads or writes a file.

replica_log     what a leader and a follower append, what readers get, deletion and compaction
batch           `StoredBatch`, which replicas share: bytes, and what must be known of them
admission       the leader's checks of records that a producer sends; conversion of old message formats
segments        the batches in segments, and reads by offset; timestamps: reads by time
epochs          where each leader epoch began (KIP-101)
producers       sequence numbers and producer epochs; transactions: open and aborted ones
cleaner         compaction; retention: which segments are deleted
config          a topic's settings by Kafka's names (`LogConfig.of`)

A mistake of a client is not raised. It is returned as `AppendRefusal`: error code, reason, record errors.
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
