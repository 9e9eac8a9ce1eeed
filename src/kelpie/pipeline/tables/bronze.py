"""What was observed, row by row."""

import pyarrow as pa

from kelpie.pipeline.tables.table import DAY, Column, in_layer, required
from kelpie.pipeline.tables.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INT,
    LABELS,
    LONG,
    MOMENT,
    SHORT,
    STRING,
    STRINGS,
)

_table = in_layer("bronze", cluster="which cluster: the name given to the run, or the cluster's id")
_SOURCE = required("source", STRING, "file, or topic, that the row is from")
_LOG_EPOCH = Column(
    "log_epoch",
    INT,
    "leader epoch that the record was written in; where replicas differ, the higher one is right",
)
_REPLICA = Column("replica", INT, "broker whose disk the record was on; null when it came over the network")
_PLACE = (
    required("offsets_partition", INT, "partition of __consumer_offsets"),
    required("log_offset", LONG, "offset of the record in it"),
    Column("written", MOMENT, "timestamp of the record"),
)

UNREAD, ASSIGNOR, TOPIC_REGEX, SESSION_TIMEOUT = "unread", "assignor", "topic_regex", "session_timeout_ms"
"""Keys of `group_metadata.details`."""
_MEMBER = pa.struct(
    {
        "member_id": STRING,
        "instance_id": STRING,
        "client_id": STRING,
        "client_host": STRING,
        "session_timeout_ms": INT,
        "rebalance_timeout_ms": INT,
        "subscribed": STRINGS,
        "assigned": pa.list_(pa.struct({"topic": STRING, "partition": INT})),
    }
)

OFFSET_COMMIT = _table(
    "offset_commit",
    "Every commit that a record of the offsets topic tells of, and every removal of one.",
    ("offsets_partition", "log_offset"),
    *_PLACE,
    required("group", STRING, "the group"),
    required("topic", STRING, "topic that the offset is of"),
    required("partition", INT, "partition that the offset is of"),
    Column("offset", LONG, "the next record to read; null: the committed offset was removed"),
    Column("leader_epoch", INT, "leader epoch of the last record read, where the client told it"),
    Column("metadata", STRING, "what the client noted beside it"),
    Column("committed", MOMENT, "when the coordinator took the commit"),
    Column("expires", MOMENT, "when it was to expire: only old clients ask for that"),
    Column("producer_id", LONG, "the producer, when it is part of a transaction"),
    Column("producer_epoch", SHORT, "its epoch"),
    required("is_transactional", BOOLEAN, "whether it counts only once its transaction is committed"),
    Column("value_version", BYTE, "version of the record's value"),
    _REPLICA,
    _SOURCE,
    _LOG_EPOCH,
)

TRANSACTION_MARKER = _table(
    "transaction_marker",
    "Ends of transactions in the offsets topic: whether their commits count.",
    ("offsets_partition", "log_offset"),
    *_PLACE,
    required("producer_id", LONG, "the producer"),
    required("producer_epoch", SHORT, "its epoch"),
    required("is_commit", BOOLEAN, "committed, or aborted"),
    _REPLICA,
    _SOURCE,
    _LOG_EPOCH,
)

GROUP_METADATA = _table(
    "group_metadata",
    "Records about groups themselves: generations of classic groups with members, KIP-848 groups, removals.",
    ("offsets_partition", "log_offset"),
    *_PLACE,
    required("group", STRING, "the group"),
    required(
        "key_type",
        BYTE,
        "type of the record: 2 classic group, 3 to 8 and 16 KIP-848, 9 to 15 share, 17 and up streams",
    ),
    Column("kind", STRING, "the record's type in words"),
    Column("generation", INT, "generation, or epoch"),
    Column("protocol_type", STRING, "consumer, connect …"),
    Column("protocol", STRING, "the assignor chosen"),
    Column("leader", STRING, "member that assigns"),
    Column(
        "members",
        pa.list_(_MEMBER),
        "all members of a classic group; the one that a record of others is about",
    ),
    required("is_removal", BOOLEAN, "a tombstone"),
    Column("key", BINARY, "the record's key"),
    Column("value", BINARY, "the record's value"),
    _REPLICA,
    _SOURCE,
    _LOG_EPOCH,
    Column(
        "details",
        LABELS,
        f"{UNREAD}: why the value could not be read; of a KIP-848 member {ASSIGNOR}, {TOPIC_REGEX} and, "
        f"if it speaks the classic protocol, {SESSION_TIMEOUT}; of type 4 the names of topics by id",
    ),
)

LOG_EVENT = _table(
    "log_event",
    "Lines of logs of brokers and clients that mean something, with the lines that belong to them.",
    ("source", "log", "line", "part"),
    Column("at", MOMENT, "when, as the line says"),
    _SOURCE,
    required("line", LONG, "number of the line, or of the byte where the event begins"),
    required("kind", STRING, "what it means: an EventKind of the observations"),
    Column("level", STRING, "INFO, WARN …"),
    Column("group", STRING, "the group"),
    Column("member", STRING, "member id"),
    Column("instance_id", STRING, "group.instance.id"),
    Column("client_id", STRING, "client.id"),
    Column("node", INT, "broker that it is about"),
    Column("topic", STRING, "topic"),
    Column("partition", INT, "partition"),
    Column("offset", LONG, "offset"),
    Column("generation", INT, "generation, or epoch"),
    Column("error", INT, "Kafka's error code"),
    Column("reason", STRING, "why, in the words of the line"),
    Column("details", LABELS, "what only this kind has"),
    required("text", STRING, "the line as it stands there"),
    Column("part", INT, "which one, of several events that a line tells of"),
    Column("log", STRING, "which log it is: files of one name have held others before"),
)

METRIC_SAMPLE = _table(
    "metric_sample",
    "Samples of Prometheus scrapes.",
    ("source", "line"),
    Column("at", MOMENT, "when: the sample's own time, or that of the scrape"),
    _SOURCE,
    required("line", LONG, "number of the line"),
    required("name", STRING, "name of the metric"),
    required("labels", LABELS, "its labels"),
    Column("value", DOUBLE, "its value"),
    Column("type", STRING, "counter, gauge …, where the scrape says"),
)

AMOUNTS = (
    Column("messages", LONG, "messages that consumers fetched"),
    Column("bytes", LONG, "their bytes"),
    Column("entries", LONG, "entries, as Pulsar stores them: one batch of messages each"),
)
"""What brokers count of their traffic."""

TRAFFIC_SAMPLE = _table(
    "traffic_sample",
    "What brokers with KoP had counted of each topic, partition and group, scrape by scrape. A scrape "
    "without any such series is a row without a topic.",
    ("broker", "at", "source", "topic", "partition", "group"),
    required(DAY, DATE, "the day of `at`"),
    required("broker", STRING, "which broker, as far as names and labels tell"),
    required("at", MOMENT, "when: the scrape's own time, or that of its file"),
    _SOURCE,
    Column("line", LONG, "number of the line that has the messages"),
    Column("topic", STRING, "the topic, as the scrape has it"),
    Column("partition", INT, "the partition"),
    Column("group", STRING, "the label; empty: the group was not known; null: there is no such label"),
    *AMOUNTS,
    Column("is_stamped", BOOLEAN, "whether the scrape itself says when it was made"),
    divided_by=(DAY,),
)

CLUSTER_SNAPSHOT = _table(
    "cluster_snapshot",
    "What surveys and Kafka's tools told: one row per thing asked, whatever it was.",
    ("snapshot", "ordinal"),
    Column("at", MOMENT, "when it was asked"),
    required("snapshot", STRING, "which survey, or which file"),
    required(
        "kind",
        STRING,
        "broker, partition, topic, clock, listing, answer, state, committed, ends, size, setting …",
    ),
    Column("node", INT, "broker that was asked, or that it is about"),
    Column("group", STRING, "the group that it is about"),
    Column("topic", STRING, "the topic that it is about"),
    Column("partition", INT, "the partition that it is about"),
    required("ordinal", LONG, "place of the row in its snapshot"),
    required("body", STRING, "all of it, as JSON, in the words of the observations"),
    _SOURCE,
)

POSITIONS_SEEN = (
    Column("group", STRING, "the group; null: the row is of the log itself"),
    Column("broker", STRING, "of a log: the broker that leads it"),
    Column("offset", LONG, "of a group: its committed offset; of a log: the high watermark"),
    Column("start_offset", LONG, "of a log: its first offset"),
    Column("size", LONG, "of a log: its bytes on the leader; null: not known"),
    Column("is_whole", BOOLEAN, "of a log: whether only whole segments at its start are ever removed"),
    Column("leader_epoch", INT, "of a group: that of its commit, where the client told it"),
)
"""What a survey sees of a partition."""

OFFSET_SAMPLE = _table(
    "offset_sample",
    "Where logs end, how large they are, and where groups stand in them, survey by survey.",
    ("at", "topic", "partition", "group"),
    required(DAY, DATE, "the day of `at`"),
    required("at", MOMENT, "when the end of the log was asked"),
    required("topic", STRING, "the topic"),
    required("partition", INT, "the partition"),
    *POSITIONS_SEEN,
    required("source", STRING, "the survey"),
    divided_by=(DAY,),
)

QUARANTINE = _table(
    "quarantine",
    "What could not be read: nothing is dropped without a word.",
    ("source", "position", "reason"),
    _SOURCE,
    required("position", LONG, "byte where it begins"),
    required("size", LONG, "how many bytes"),
    required("reason", STRING, "why it could not be read"),
    Column("bytes", BINARY, "the first 4,096 of them"),
)

EVIDENCE_FILE = _table(
    "evidence_file",
    "Files that were taken in, each once: what they are, and with which batch they came.",
    ("path", "size", "modified"),
    required("source", STRING, "its name, as rows that come of it call it"),
    required("path", STRING, "where it lay; for a file in an archive, the archive and its name there"),
    required("size", LONG, "bytes"),
    Column("modified", MOMENT, "when it was last changed"),
    required(
        "kinds",
        STRINGS,
        "segment, log, output, configuration, scrape, survey, zookeeper; empty: of no use",
    ),
    Column("reason", STRING, "why it is of no use"),
    required("batch", LONG, "number of the batch, counted by cluster"),
)

BRONZE = (
    EVIDENCE_FILE,
    OFFSET_COMMIT,
    TRANSACTION_MARKER,
    GROUP_METADATA,
    LOG_EVENT,
    METRIC_SAMPLE,
    TRAFFIC_SAMPLE,
    CLUSTER_SNAPSHOT,
    OFFSET_SAMPLE,
    QUARANTINE,
)
