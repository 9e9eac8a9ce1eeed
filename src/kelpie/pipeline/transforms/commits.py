"""commit_timeline: the commits that counted, each once, with the one before.

- The same record from several replicas, or from a disk and from the topic, is one record: same cluster,
  partition of the offsets topic and offset there.
- Replicas may differ: a dead leader may have records at its end that were not replicated, and its successor
  wrote others at the same offsets. The log of the newest leader counts: where a newer leader epoch begins,
  records of older epochs end (KIP-101).
- A transactional commit counts if the next marker of its producer in that partition is a commit; without a
  marker, it does not count yet. A tombstone of the same key outside a transaction removes what was pending.
- The order of the log decides what was committed last, also between transactional and plain commits: Kafka
  lets a transaction replace only what was written before its own record.
"""

from functools import reduce
from operator import or_
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.windows import following

_PARTITION = ["cluster", "offsets_partition"]
_PLACE = ["cluster", "offsets_partition", "log_offset"]
_POSITION = ["cluster", "group", "topic", "partition"]
_IN_LOG = [*_POSITION, "offsets_partition"]
"""A position in one log. A group that moves to another offsets partition, because the topic got more of them,
has no offsets there.
"""
SETTLED, PENDING, OPEN = "settled", "pending", "open"
_COMPARED = ("offset", "committed", "leader_epoch", "expires")
"""What the next commit is compared with."""


class Epochs(NamedTuple):
    """Where leader epochs began, by rows that were read before, of commits and of markers.

    cluster, offsets_partition, log_epoch, epoch_began.
    """

    of_commits: DataFrame | None = None
    of_markers: DataFrame | None = None


_NO_EPOCHS = Epochs()


def once(records: DataFrame, epochs: DataFrame | None = None) -> DataFrame:
    """Each record of the offsets topic once, also if several replicas have it."""
    return _standing(records, epochs).dropDuplicates(_PLACE)


def _standing(records: DataFrame, known: DataFrame | None) -> DataFrame:
    """Without records of an older leader at offsets where a newer leader has written."""
    own = records.where(F.col("log_epoch").isNotNull()).select(
        *_PARTITION, "log_epoch", F.col("log_offset").alias("epoch_began")
    )
    began = own if known is None else own.unionByName(known)
    epochs = began.groupBy(*_PARTITION, "log_epoch").agg(F.min("epoch_began").alias("epoch_began"))
    newer = following(Window.partitionBy(*_PARTITION).orderBy(F.desc("log_epoch")))
    ends = epochs.select(*_PARTITION, "log_epoch", F.min("epoch_began").over(newer).alias("epoch_ended"))
    # One row per partition and election: small whatever the records are.
    judged = records.join(F.broadcast(ends), [*_PARTITION, "log_epoch"], "left")
    stands = F.col("epoch_ended").isNull() | (F.col("log_offset") < F.col("epoch_ended"))
    return judged.where(stands).select(*records.columns)


def counted(commits: DataFrame, markers: DataFrame, epochs: Epochs = _NO_EPOCHS) -> DataFrame:
    """The commits that counted, each once."""
    return _counted(commits, markers, epochs).dropDuplicates(_PLACE)


def _counted(commits: DataFrame, markers: DataFrame, epochs: Epochs) -> DataFrame:
    """The commits that counted; commits outside transactions as often as there are copies."""
    standing = _standing(commits, epochs.of_commits)
    judged = standing.where(F.col("is_transactional") | F.col("offset").isNull()).dropDuplicates(_PLACE)
    plain = standing.where(~F.col("is_transactional"))
    return plain.unionByName(_committed(judged, once(markers, epochs.of_markers)))


def timeline(commits: DataFrame, markers: DataFrame, epochs: Epochs = _NO_EPOCHS) -> DataFrame:
    """Rows of commit_timeline."""
    # Copies of a record have the same position and are neighbours in its order. So the shuffle and the sort
    # that find the commit before also find copies; dropDuplicates would need another shuffle.
    by_position = Window.partitionBy(*_IN_LOG).orderBy("log_offset", "is_transactional")
    without_copies = (
        _counted(commits, markers, epochs)
        .withColumn("copied", F.lag("log_offset").over(by_position))
        .where(~F.col("copied").eqNullSafe(F.col("log_offset")))
    )
    # The first commit after a removal has no offset before it to be compared with.
    before = F.lag(F.struct(*_COMPARED)).over(by_position)
    rows = without_copies.withColumn("before", before)
    return rows.select(
        *_POSITION,
        "offsets_partition",
        "log_offset",
        F.coalesce("committed", "written").alias("committed"),
        "offset",
        F.col("before.offset").alias("previous_offset"),
        F.col("before.committed").alias("previous_committed"),
        (F.col("offset") - F.col("before.offset")).alias("advance"),
        "leader_epoch",
        "is_transactional",
        F.col("before.leader_epoch").alias("previous_leader_epoch"),
        F.col("before.expires").alias("previous_expires"),
    )


def carried_commits(commits: DataFrame, markers: DataFrame, epochs: Epochs, why: str) -> DataFrame:
    """Rows of `commits` that matter for later rows of the log, and why (a column of this name).

    Of each position the last one that counted; those that wait for the end of their transaction; and, as
    one that waits comes before them if it counts, those that counted after it.
    """
    standing = _standing(commits, epochs.of_commits)
    waiting = standing.where("is_transactional").dropDuplicates(_PLACE)
    pending = (
        _with_endings(waiting, once(markers, epochs.of_markers))
        .where(F.col("verdict").isNull())
        .select(*commits.columns)
    )
    first = pending.groupBy(*_IN_LOG).agg(F.min("log_offset").alias("waits_from"))
    judged = counted(commits, markers, epochs).join(first, _IN_LOG, "left")
    is_settled = F.col("waits_from").isNull() | (F.col("log_offset") < F.col("waits_from"))
    whole = F.struct(*(name for name in commits.columns if name not in _IN_LOG))
    last = judged.where(is_settled).groupBy(*_IN_LOG).agg(F.max_by(whole, "log_offset").alias("last"))
    # A removal is like nothing for the next commit.
    settled = last.select(*_IN_LOG, "last.*").where(
        reduce(or_, (F.col(name).isNotNull() for name in _COMPARED))
    )
    # Its transaction has ended, and the marker that says so is not read again.
    settled = settled.withColumn("is_transactional", F.lit(False))
    return (
        settled.select(*commits.columns, F.lit(SETTLED).alias(why))
        .unionByName(pending.withColumn(why, F.lit(PENDING)))
        .unionByName(judged.where(~is_settled).select(*commits.columns, F.lit(OPEN).alias(why)))
    )


def _committed(commits: DataFrame, markers: DataFrame) -> DataFrame:
    """Transactional commits whose transaction was committed."""
    judged = _with_endings(commits.where("is_transactional"), markers).where("verdict")
    # Plain tombstones end what is pending for their key, whatever the marker says.
    tombstones = commits.where(~F.col("is_transactional") & F.col("offset").isNull())
    removed = tombstones.select(*_POSITION, F.col("log_offset").alias("removed_at"))
    survived = judged.join(
        removed,
        [judged[name] == removed[name] for name in _POSITION]
        + [removed["removed_at"] > judged["log_offset"], removed["removed_at"] < judged["ended_at"]],
        "left_anti",
    )
    return survived.drop("verdict", "ended_at")


def _with_endings(pending: DataFrame, markers: DataFrame) -> DataFrame:
    """Transactional commits with the `verdict` on their transaction, and `ended_at`; null: it goes on."""
    ends = markers.select(*_PLACE, "producer_id", F.col("is_commit").alias("ending"))
    by_producer = following(
        Window.partitionBy("cluster", "offsets_partition", "producer_id").orderBy(F.desc("log_offset"))
    )
    return (
        pending.withColumn("ending", F.lit(None).cast("boolean"))
        .unionByName(ends, allowMissingColumns=True)
        .withColumn("verdict", _next("ending", by_producer))
        .withColumn(
            "ended_at",
            _next("ended_at", by_producer, F.when(F.col("ending").isNotNull(), F.col("log_offset"))),
        )
        .where(F.col("ending").isNull())
        .drop("ending")
    )


def _next(name: str, window: WindowSpec, value: Column | None = None) -> Column:
    """The first value after a row that is not null. `window`: one of `following`."""
    return F.last(F.col(name) if value is None else value, ignorenulls=True).over(window)
