"""What people ask for."""

import pyarrow as pa

from kelpie.pipeline.tables.bronze import AMOUNTS
from kelpie.pipeline.tables.table import DAY, HOW, Column, in_layer, required
from kelpie.pipeline.tables.types import BOOLEAN, DATE, INT, LONG, MOMENT, STRING, STRINGS

_table = in_layer("gold", cluster="which cluster")
_GROUP = required("group", STRING, "the group")
_POSITION = (required("topic", STRING, "the topic"), required("partition", INT, "the partition"))

GROUP_HEALTH = _table(
    "group_health",
    "One row per group: how it stands at the end of what is known.",
    ("group",),
    _GROUP,
    required("at", MOMENT, "the end of what is known of it, and of the cluster as a whole"),
    Column("offsets_partition", INT, "where it lives"),
    Column("state", STRING, "as described last"),
    Column("members", INT, "how many members"),
    Column("generation", INT, "the last one known"),
    Column("rebalances", LONG, "how many are known"),
    Column("last_commit", MOMENT, "when it last committed"),
    Column("partitions", INT, "for how many partitions it has committed offsets"),
    Column("lag", LONG, "records to read, over all partitions whose end is known"),
    Column("lag_ms", LONG, "the worst of its partitions"),
    Column("worst", STRING, "severity of its worst finding"),
    Column("findings", STRINGS, "codes of its findings"),
    Column("known_from", STRINGS, "where the group is known from"),
    Column("is_listed", BOOLEAN, "whether a broker lists it; null: nobody could be asked who would know"),
)

COORDINATOR_OUTAGE = _table(
    "coordinator_outage",
    "Offsets partitions without a leader, and the groups that it hit.",
    ("offsets_partition", "began"),
    required("offsets_partition", INT, "partition of __consumer_offsets"),
    Column("began", MOMENT, "from when"),
    Column("ended", MOMENT, "until when; null while it goes on"),
    Column("brokers", pa.list_(INT), "its replicas"),
    required("groups", STRINGS, "groups that live there"),
    Column("evidence", STRING, "how that is known"),
)

OFFSET_REGRESSION = _table(
    "offset_regression",
    "Commits that went back: so many records are read again.",
    ("group", "topic", "partition", "at"),
    _GROUP,
    *_POSITION,
    required("at", MOMENT, "when"),
    required("from_offset", LONG, "where the group stood"),
    required("to_offset", LONG, "where it stands now"),
    required("replayed", LONG, "records read again"),
    Column("regained", MOMENT, "when it was back where it had been"),
    Column("by", STRING, "member, or reset: by an administrator; null: old clients leave that open"),
)

OFFSET_LOSS = _table(
    "offset_loss",
    "Committed offsets that were lost, or that point to records that are gone.",
    ("group", "topic", "partition", "at", "kind"),
    _GROUP,
    *_POSITION,
    required("at", MOMENT, "when"),
    required("kind", STRING, "expired, deleted, skipped, below-log-start, beyond-log-end"),
    Column("offset", LONG, "the last one that counted"),
    Column("records", LONG, "how many records that skips, or replays; null as long as the group rests"),
    Column("next_offset", LONG, "where the group went on: its first commit after"),
    Column("resumed", MOMENT, "when that was"),
    Column("effect", STRING, "what became of it: skipped, replayed, none; null: the group did not go on"),
)

TRAFFIC = _table(
    "traffic",
    "Records consumed, by group, topic and hour, as commits tell.",
    ("group", "topic", "hour"),
    _GROUP,
    required("topic", STRING, "the topic"),
    required("hour", MOMENT, "the hour"),
    required("records", LONG, "how many records further the group got"),
    required("commits", LONG, "how many commits it made"),
)

ATTRIBUTED_TRAFFIC = _table(
    "attributed_traffic",
    "What each group fetched, from scrape to scrape, and how that is known. By topic, partition and window, "
    "rows add up to what the brokers counted; those that are derived are beside them, for clusters whose "
    "brokers do not count by group.",
    ("how", "broker", "topic", "partition", "group", "label", "ended"),
    required(DAY, DATE, "the day of `ended`"),
    required(
        HOW,
        STRING,
        "counted: the broker says so; exact: only this group can have fetched it; apportioned: an estimate, "
        "by committed offsets; unknown: nothing tells; derived: from survey to survey, by committed offsets "
        "and the size of the log between them",
    ),
    required("broker", STRING, "the broker that counted; of derived rows, the leader"),
    *_POSITION,
    Column("group", STRING, "the group; null: unknown"),
    Column("label", STRING, "what the broker had in its place; null: it named the group"),
    Column(
        "began",
        MOMENT,
        "the scrape, or the survey, before; null: there is none, so it is all since the broker's start",
    ),
    required("ended", MOMENT, "the scrape, or the survey"),
    *AMOUNTS,
    divided_by=(DAY, HOW),
)

ATTRIBUTION_GAP = _table(
    "attribution_gap",
    "Times in which a broker counted traffic of a partition to no group. One that lasts over midnight is a "
    "row for each day.",
    ("broker", "topic", "partition", "label", "ended"),
    required(DAY, DATE, "the day of `ended`"),
    required("broker", STRING, "the broker"),
    *_POSITION,
    required("label", STRING, "what stands in place of the group: empty, or ambiguous"),
    Column("began", MOMENT, "from when; null: from some time before the first scrape of the broker"),
    required("ended", MOMENT, "until when"),
    *AMOUNTS,
    required("groups", STRINGS, "the groups that it was given to"),
    required("exact", LONG, "messages of these that are given to a group for certain"),
    required("apportioned", LONG, "messages that are given to groups by an estimate"),
    required("unknown", LONG, "messages that are given to no group"),
    required("why", STRING, "why, as far as evidence tells"),
    divided_by=(DAY,),
)

FINDINGS = _table(
    "findings",
    "What the doctor says, group by group.",
    ("group", "code", "cause"),
    Column("group", STRING, "the group; null: the cluster as a whole"),
    required("code", STRING, "KLP…"),
    required("name", STRING, "name of the rule"),
    required("severity", STRING, "notice, warning, critical"),
    required("summary", STRING, "one sentence"),
    Column("why", STRING, "what follows from it"),
    Column("cause", STRING, "findings with the same code and cause are one incident"),
    Column("since", MOMENT, "from when"),
    Column("until", MOMENT, "until when"),
    required(
        "evidence", pa.list_(pa.struct({"text": STRING, "source": STRING, "at": MOMENT})), "what was seen"
    ),
    required("remedies", pa.list_(pa.struct({"text": STRING, "command": STRING})), "what to do"),
    Column("brokers", pa.list_(INT), "brokers that it is about"),
    Column("partitions", STRINGS, "partitions that it is about, as Kafka writes them"),
    Column("members", STRINGS, "members that it is about"),
    Column("check", STRING, "a command of Kafka's own tools that shows the same"),
)

OPEN_QUESTION = _table(
    "open_question",
    "What the doctor could not decide, and what would have to be known: too little data is not all is well.",
    ("group", "code"),
    Column("group", STRING, "the group; null: the cluster as a whole"),
    required("code", STRING, "KLP…"),
    required("name", STRING, "name of the rule"),
    required("missing", STRINGS, "what is missing"),
)

GOLD = (
    GROUP_HEALTH,
    COORDINATOR_OUTAGE,
    OFFSET_REGRESSION,
    OFFSET_LOSS,
    TRAFFIC,
    ATTRIBUTED_TRAFFIC,
    ATTRIBUTION_GAP,
    FINDINGS,
    OPEN_QUESTION,
)
