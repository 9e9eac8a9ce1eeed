"""What follows from the observations, in order of time."""

import pyarrow as pa

from kelpie.pipeline.tables.bronze import AMOUNTS, POSITIONS_SEEN
from kelpie.pipeline.tables.table import DAY, Column, in_layer, required
from kelpie.pipeline.tables.types import BOOLEAN, DATE, INT, LONG, MOMENT, STRING, STRINGS

_table = in_layer("silver", cluster="which cluster")
_GROUP = required("group", STRING, "the group")
_TOPIC = required("topic", STRING, "the topic")
_PARTITION = required("partition", INT, "the partition")

POSITIONS = pa.list_(pa.struct({"topic": STRING, "partition": INT}))
ROSTER = pa.list_(
    pa.struct(
        {
            "member_id": STRING,
            "instance_id": STRING,
            "client_id": STRING,
            "client_host": STRING,
            "epoch": INT,
            "subscribed": STRINGS,
            "assigned": POSITIONS,
            "owned": POSITIONS,
        }
    )
)

GROUP_GENERATION = _table(
    "group_generation",
    "Generations of groups. A group that was removed begins again at 0: that is its next incarnation.",
    ("group", "incarnation", "generation"),
    _GROUP,
    required("incarnation", INT, "how often the group had been removed before"),
    required("generation", INT, "generation, or epoch of a KIP-848 group"),
    required("began", MOMENT, "when its record was written, or the log told of it"),
    Column("ended", MOMENT, "when the next one began, or the group was removed"),
    Column("members", INT, "how many members"),
    Column("member_ids", STRINGS, "which"),
    Column("protocol", STRING, "the assignor"),
    Column("leader", STRING, "member that assigned"),
    Column("log_offset", LONG, "of the record; null when only logs tell of it"),
    Column("kind", STRING, "classic, or consumer: KIP-848"),
    Column(
        "settled",
        MOMENT,
        "when every member had its assignment of this generation or a later one; null: not so far",
    ),
    Column(
        "roster",
        ROSTER,
        "the members at its end: what each was assigned, and, of KIP-848, its epoch and what it had",
    ),
)

REBALANCE = _table(
    "rebalance",
    "Rebalances: from the moment somebody made one necessary until the new assignment was there.",
    ("group", "started"),
    _GROUP,
    required("started", MOMENT, "when it began; from records alone, the end of the last generation's calm"),
    Column(
        "ended",
        MOMENT,
        "when the assignment was there; null while it goes on, or if a member did not succeed",
    ),
    Column("duration_ms", LONG, "how long"),
    Column("from_generation", INT, "generation before"),
    Column("to_generation", INT, "generation after"),
    Column(
        "cause",
        STRING,
        "why, in one word: joined, left, expired, poll-interval, fenced, subscription, static, rejoined "
        "(to take over what others gave up), unknown",
    ),
    Column("reason", STRING, "why, in the words of a log; of groups in ZooKeeper, who came or went first"),
    Column("joined", STRINGS, "members that are new"),
    Column("left", STRINGS, "members that are gone"),
    Column(
        "gave_up",
        STRINGS,
        "members whose tries were used up; only of groups that ZooKeeper keeps, which have no generations",
    ),
)

MEMBERSHIP_INTERVAL = _table(
    "membership_interval",
    "Who was a member, from when to when, and what it owned at the end.",
    ("group", "member_id", "began"),
    _GROUP,
    required("member_id", STRING, "the member"),
    Column("instance_id", STRING, "group.instance.id"),
    Column("client_id", STRING, "client.id"),
    Column("client_host", STRING, "where it came from"),
    required("began", MOMENT, "the first generation with it, or its registration in ZooKeeper"),
    Column("ended", MOMENT, "the first generation or registration without it; null while it is there"),
    Column("first_generation", INT, "that generation"),
    Column("last_generation", INT, "the last one with it"),
    Column("left_because", STRING, "left, expired, poll-interval, fenced, unknown"),
    Column("assigned", POSITIONS, "what it had at the end"),
)

OWNERSHIP_INTERVAL = _table(
    "ownership_interval",
    "Which consumer of Kafka 0.8 owned which partition, from when to when: its node in ZooKeeper.",
    ("group", "topic", "partition", "began"),
    _GROUP,
    _TOPIC,
    _PARTITION,
    required("member_id", STRING, "the owner"),
    Column("thread", STRING, "its thread"),
    required("began", MOMENT, "when it claimed the partition"),
    Column(
        "ended", MOMENT, "when the node was gone, or by dumps, the first one without it; null: still there"
    ),
    Column(
        "ended_because",
        STRING,
        "released (for a rebalance), closed, expired (its session), taken-over (nobody says how it ended); "
        "null: by dumps, or still there",
    ),
    required("evidence", STRING, "logs: its own, and ZooKeeper's; dumps: of ZooKeeper's tree"),
)

REBALANCE_ATTEMPT = _table(
    "rebalance_attempt",
    "Tries of consumers of Kafka 0.8 to rebalance: who was in the way, and what came of it.",
    ("group", "member_id", "ordinal"),
    _GROUP,
    required("member_id", STRING, "the consumer"),
    required("ordinal", INT, "which of its tries, counted from 1; 0: its log begins in the midst of it"),
    Column("number", INT, "its number within the rebalance, as in try #0"),
    required("began", MOMENT, "when it began"),
    Column("ended", MOMENT, "when it had succeeded or failed; null: the log does not say"),
    Column(
        "outcome", STRING, "succeeded, failed, no-brokers (nothing to assign); null: the log does not say"
    ),
    required(
        "conflicts",
        pa.list_(pa.struct({"at": MOMENT, "topic": STRING, "partition": INT, "owner": STRING})),
        "partitions that it could not claim, and the member whose node was there",
    ),
    Column(
        "exception",
        STRING,
        "ConsumerRebalanceFailedException after it, and where it ended: watcher (only a log has it), "
        "start-up (the application gets it), new session",
    ),
    Column("gave_up", MOMENT, "when that was"),
    Column("source", STRING, "the log"),
)

COMMIT_TIMELINE = _table(
    "commit_timeline",
    "Commits that counted, each once, with the one before.",
    ("offsets_partition", "log_offset"),
    _GROUP,
    _TOPIC,
    _PARTITION,
    required("offsets_partition", INT, "where it was written"),
    required("log_offset", LONG, "its place there"),
    Column("committed", MOMENT, "when"),
    Column("offset", LONG, "the next record to read; null: removed"),
    Column("previous_offset", LONG, "what was committed before"),
    Column("previous_committed", MOMENT, "when"),
    Column("advance", LONG, "how many records further; negative: back"),
    Column("leader_epoch", INT, "leader epoch, where the client told it"),
    required("is_transactional", BOOLEAN, "whether a transaction wrote it"),
    Column("previous_leader_epoch", INT, "leader epoch of the one before"),
    Column("previous_expires", MOMENT, "when the one before was to expire, if its commit said so"),
)

LAG = _table(
    "lag",
    "How far behind a group was, whenever the end of the log was known. Of a group that ZooKeeper keeps: "
    "where its offset at that time is known, to ten seconds.",
    ("group", "topic", "partition", "at"),
    _GROUP,
    _TOPIC,
    _PARTITION,
    required("at", MOMENT, "when the end of the log was looked at"),
    Column("offset", LONG, "committed offset that counted then"),
    Column("end_offset", LONG, "high watermark"),
    Column("stable_offset", LONG, "last stable offset"),
    Column("lag", LONG, "records to read"),
    Column("stable_lag", LONG, "records that a reader of committed ones could read"),
    Column("lag_ms", LONG, "how long ago the log ended where the group stands"),
)

COORDINATOR_TIMELINE = _table(
    "coordinator_timeline",
    "Which broker coordinated the groups of an offsets partition, from when to when; in gaps, none.",
    ("offsets_partition", "began"),
    required("offsets_partition", INT, "partition of __consumer_offsets"),
    Column("node", INT, "the broker; null: nobody"),
    Column("leader_epoch", INT, "its epoch"),
    required("began", MOMENT, "from when"),
    Column("ended", MOMENT, "until when; null while it is so"),
    Column("evidence", STRING, "how that is known"),
)

TRAFFIC_CLOSING = _table(
    "traffic_closing",
    "The last two scrapes of each broker and day: the next day goes on from them, without reading that day.",
    ("broker", "at", "source", "topic", "partition", "group"),
    required(DAY, DATE, "the day"),
    required("broker", STRING, "the broker"),
    required("at", MOMENT, "when it was scraped"),
    required("source", STRING, "the scrape"),
    Column("topic", STRING, "the topic; null: the scrape has no traffic"),
    Column("partition", INT, "the partition"),
    Column("group", STRING, "the label; empty: the group was not known"),
    *AMOUNTS,
    divided_by=(DAY,),
)

TRAFFIC_OPENING = _table(
    "traffic_opening",
    "The first scrape of each broker and day: it shows which groups keep their labels over midnight.",
    ("broker", "at", "source", "topic", "partition", "group"),
    required(DAY, DATE, "the day"),
    required("broker", STRING, "the broker"),
    required("at", MOMENT, "when it was scraped"),
    required("source", STRING, "the scrape"),
    Column("topic", STRING, "the topic; null: the scrape has no traffic"),
    Column("partition", INT, "the partition"),
    Column("group", STRING, "the label; empty: the group was not known"),
    *AMOUNTS,
    divided_by=(DAY,),
)

OFFSET_CLOSING = _table(
    "offset_closing",
    "Of each day, what the last survey of each log and of each group's position in it saw: the next day goes "
    "on from it.",
    ("topic", "partition", "group"),
    required(DAY, DATE, "the day"),
    required("at", MOMENT, "when the end of the log was asked"),
    _TOPIC,
    _PARTITION,
    *POSITIONS_SEEN,
    divided_by=(DAY,),
)

UNATTRIBUTED_TRAFFIC = _table(
    "unattributed_traffic",
    "What brokers counted to no group, from scrape to scrape, with the groups that they counted beside it.",
    ("broker", "topic", "partition", "label", "ended"),
    required(DAY, DATE, "the day of `ended`"),
    required("broker", STRING, "the broker"),
    _TOPIC,
    _PARTITION,
    required("label", STRING, "what stands in place of the group: empty, or ambiguous"),
    Column("began", MOMENT, "the scrape before; null: there is none"),
    required("ended", MOMENT, "the scrape"),
    *AMOUNTS,
    required("after_restart", BOOLEAN, "whether the broker was started in between"),
    required("has_labels", BOOLEAN, "whether the broker names the group of any series"),
    required(
        "beside",
        pa.list_(pa.struct({"group": STRING, "messages": LONG, "is_steady": BOOLEAN})),
        "groups counted on this broker and partition meanwhile; steady: before and afterwards, too; null: "
        "before, too, and the scrape is the last one of the day",
    ),
    divided_by=(DAY,),
)

SILVER = (
    GROUP_GENERATION,
    REBALANCE,
    MEMBERSHIP_INTERVAL,
    OWNERSHIP_INTERVAL,
    REBALANCE_ATTEMPT,
    COMMIT_TIMELINE,
    LAG,
    COORDINATOR_TIMELINE,
    TRAFFIC_CLOSING,
    TRAFFIC_OPENING,
    OFFSET_CLOSING,
    UNATTRIBUTED_TRAFFIC,
)
