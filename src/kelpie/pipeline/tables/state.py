"""What rounds leave for the next round (`rounds`): rows of inputs that must be read again, and by it only.

They are tables of the lake like all others, so that they are committed and cleaned up like all others.
"""

from dataclasses import replace

import pyarrow as pa

from kelpie.pipeline.tables.bronze import (
    CLUSTER_SNAPSHOT,
    GROUP_METADATA,
    LOG_EVENT,
    OFFSET_COMMIT,
    TRANSACTION_MARKER,
)
from kelpie.pipeline.tables.silver import COMMIT_TIMELINE
from kelpie.pipeline.tables.table import CLUSTER, Column, LakeTable, in_layer, required
from kelpie.pipeline.tables.types import BOOLEAN, INT, LONG, MOMENT, STRING, STRINGS

WHY = "carried"
"""The column that says why a row is carried."""


def _carried(name: str, of: LakeTable, why: str) -> LakeTable:
    meaning = f"Rows of {of.name} that the next round needs again."
    columns = (*of.columns, required(WHY, STRING, why))
    return replace(of, name=name, layer="state", meaning=meaning, columns=columns)


CARRIED_COMMIT = _carried(
    "carried_commit",
    OFFSET_COMMIT,
    "settled: the last one that counted; pending: its transaction has not ended; open: it counted after a "
    "pending one of the same position; epoch: the first one of a leader epoch",
)
CARRIED_MARKER = _carried(
    "carried_marker",
    TRANSACTION_MARKER,
    "ahead: commits before it may still come; epoch: the first one of a leader epoch",
)
CARRIED_POSITION = _carried(
    "carried_position",
    COMMIT_TIMELINE,
    "high: the highest offset; back: a regression that has not ended; last: the last row",
)


def _copied(name: str, of: LakeTable, meaning: str, names: tuple[str, ...], *more: Column) -> LakeTable:
    """A few columns of the rows that matter. No round reads the table itself again for them."""
    columns = (*(column for column in of.columns if column.name in (CLUSTER, *names)), *more)
    return replace(of, name=name, layer="state", meaning=meaning, columns=columns, key=(CLUSTER, *names))


COPIED_TOPIC_ID = _copied(
    "copied_topic_id", CLUSTER_SNAPSHOT, "Names of topics by id.", ("kind", "topic", "body")
)
_of_round = in_layer("state", cluster="which cluster")
_TOPIC, _PARTITION = required("topic", STRING, "the topic"), required("partition", INT, "the partition")
CARRIED_RECORD = _copied(
    "carried_record",
    GROUP_METADATA,
    "Records of the last generations of each group.",
    (
        *("offsets_partition", "log_offset", "written", "group", "key_type", "generation", "protocol_type"),
        *("protocol", "leader", "members", "is_removal", "details"),
    ),
)
CARRIED_EVENT = _copied(
    "carried_event",
    LOG_EVENT,
    "Lines of logs about the last generations of groups that Kafka keeps, and about their members.",
    ("at", "kind", "group", "member", "client_id", "generation", "reason"),
    Column("assignor", STRING, "the assignor in `details`"),
)
GROUP_TAIL = _of_round(
    "group_tail",
    "What was before the records of a group in carried_record, where some have been left out.",
    ("group",),
    required("group", STRING, "the group"),
    required("incarnation", INT, "of the first of these records"),
    required("generation", INT, "of the first of these records"),
    required("began", MOMENT, "when that generation began"),
    Column(
        "lives",
        pa.list_(pa.struct({"member_id": STRING, "began": MOMENT, "first_generation": INT})),
        "members of the group that were there then or before, and are in these records: since when",
    ),
)
CARRIED_HOLD = _of_round(
    "carried_hold",
    "Committed offsets of groups that count for rows of lag still to come, from when to when.",
    ("group", "topic", "partition", "offsets_partition", "log_offset", "began"),
    required("group", STRING, "the group"),
    _TOPIC,
    _PARTITION,
    Column("offsets_partition", INT, "where the commit was written"),
    Column("log_offset", LONG, "its place there"),
    Column("began", MOMENT, "when it was committed; of a survey, when the end of the log was looked at"),
    Column("ended", MOMENT, "when the next one was committed"),
    Column("offset", LONG, "the committed offset"),
    Column("end_offset", LONG, "of a survey: the high watermark"),
    Column("stable_offset", LONG, "of a survey: the last stable offset"),
    required(WHY, STRING, "last: no later commit was read; before: an earlier one; surveyed: by a survey"),
)
CARRIED_END = _of_round(
    "carried_end",
    "Ends of logs that tell since when a group is behind.",
    ("topic", "partition", "at"),
    _TOPIC,
    _PARTITION,
    required("at", MOMENT, "when the end of the log was looked at"),
    Column("start_offset", LONG, "the first offset"),
    Column("end_offset", LONG, "high watermark"),
    Column("stable_offset", LONG, "last stable offset"),
    required("is_trimmed", BOOLEAN, "whether earlier ones of the same log are left out"),
)
CARRIED_LOSS = _carried(
    "carried_loss",
    COMMIT_TIMELINE,
    "turn: a removal, or the first commit after one; last: the last row of its position",
)
NEWEST_END = replace(CARRIED_END, name="newest_end", meaning="The last observation of each log.")
COPIED_DELETION = _copied(
    "copied_deletion", LOG_EVENT, "Lines of logs that say that a group was deleted.", ("at", "group")
)
RECENT_COMMIT = _copied(
    "recent_commit",
    COMMIT_TIMELINE,
    "The newest commits of each position, which the doctor's rules look at.",
    (
        *("group", "topic", "partition", "offsets_partition", "log_offset", "committed", "offset"),
        *("leader_epoch", "is_transactional", "previous_expires"),
    ),
)
RECENT_GENERATION = _of_round(
    "recent_generation",
    "The newest generations of each group, and its removals, as the doctor's rules want them.",
    ("group", "place"),
    required("group", STRING, "the group"),
    required("place", LONG, "which one, of all that are known of the group"),
    required("kind", STRING, "generation, or removal"),
    Column("at", MOMENT, "when its record was written"),
    required("body", STRING, "the observation, as JSON"),
)
RECENT_EVENT = replace(
    LOG_EVENT,
    name="recent_event",
    layer="state",
    meaning="The newest lines of logs about each group; all others.",
)
KEPT_SNAPSHOT = replace(
    CLUSTER_SNAPSHOT,
    name="kept_snapshot",
    layer="state",
    meaning="Rows of files, and of the surveys that may count: others of surveys where something changed.",
)
NEWEST_LAG = _of_round(
    "newest_lag",
    "The last row of lag of each position.",
    ("group", "topic", "partition"),
    required("group", STRING, "the group"),
    _TOPIC,
    _PARTITION,
    required("at", MOMENT, "when the end of the log was looked at"),
    Column("lag", LONG, "records to read"),
    Column("lag_ms", LONG, "how long the oldest of them waits"),
)
JUDGED_GROUP = _of_round(
    "judged_group",
    "What the doctor knows of each group beside its findings.",
    ("group", "in_zookeeper"),
    required("group", STRING, "the group"),
    required("at", MOMENT, "the end of what is known of it"),
    Column("offsets_partition", INT, "where it lives"),
    Column("state", STRING, "as described last"),
    Column("member_count", INT, "how many members, as described last"),
    Column("known_from", STRINGS, "where the group is known from"),
    Column("is_listed", BOOLEAN, "whether a broker lists it"),
    required("in_zookeeper", BOOLEAN, "whether ZooKeeper keeps it"),
)

STATE: dict[str, LakeTable] = {
    table.name: table
    for table in (
        CARRIED_COMMIT,
        CARRIED_MARKER,
        CARRIED_POSITION,
        COPIED_TOPIC_ID,
        CARRIED_RECORD,
        CARRIED_EVENT,
        GROUP_TAIL,
        CARRIED_HOLD,
        CARRIED_END,
        CARRIED_LOSS,
        NEWEST_END,
        COPIED_DELETION,
        RECENT_COMMIT,
        RECENT_GENERATION,
        RECENT_EVENT,
        KEPT_SNAPSHOT,
        NEWEST_LAG,
        JUDGED_GROUP,
    )
}
