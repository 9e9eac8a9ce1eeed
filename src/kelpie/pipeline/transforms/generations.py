"""group_generation and membership_interval: classic groups and those of KIP-848 alike.

A classic group writes one record per generation; the epochs of a KIP-848 group are folded from many records
(`epochs`). A group that was removed may come again, as its next incarnation. A group that changes from the
classic protocol to KIP-848 is removed and made again in one write, and stays the same incarnation. Kafka
before 0.10 wrote records without a time: they get that of the newest commit before them in their partition of
the offsets topic.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.commits import once
from kelpie.pipeline.transforms.departures import departures
from kelpie.pipeline.transforms.epochs import epochs

CLASSIC, CONSUMER = "classic", "consumer"
CLASSIC_TYPE = 2
_GROUP = ["cluster", "group"]
TOPIC_ID = "topic-id"


def generations(group_metadata: DataFrame, commits: DataFrame, snapshot: DataFrame) -> DataFrame:
    """Rows of group_generation. `snapshot` may have the names of topics that assignments name by id."""
    records = once(group_metadata)
    return generations_of(records, epochs(records), commits, snapshot)


def generations_of(
    records: DataFrame, epochs: DataFrame, commits: DataFrame, snapshot: DataFrame
) -> DataFrame:
    """The same of records that come once each, and of the `epochs` that they tell."""
    classic = _classic(dated(records.where(F.col("key_type") == CLASSIC_TYPE), commits))
    newer = _named(epochs, snapshot).withColumn("kind", F.lit(CONSUMER))
    return _lives(classic.unionByName(newer, allowMissingColumns=True)).select(
        *_GROUP,
        "incarnation",
        "generation",
        "began",
        "ended",
        F.size("roster").alias("members"),
        F.col("roster.member_id").alias("member_ids"),
        "protocol",
        "leader",
        "log_offset",
        "kind",
        "settled",
        "roster",
    )


def memberships(generations: DataFrame, log_events: DataFrame) -> DataFrame:
    """Rows of membership_interval. Logs of brokers say why members left."""
    present = generations.select(
        *_GROUP, "incarnation", "generation", "began", "ended", F.explode("roster").alias("member")
    )
    had = F.coalesce("member.owned", "member.assigned")
    lives = present.groupBy(*_GROUP, "incarnation", F.col("member.member_id").alias("member_id")).agg(
        F.max_by("member.instance_id", "generation").alias("instance_id"),
        F.max_by("member.client_id", "generation").alias("client_id"),
        F.max_by("member.client_host", "generation").alias("client_host"),
        F.min("began").alias("began"),
        F.max_by("ended", "generation").alias("ended"),
        F.min("generation").alias("first_generation"),
        F.max("generation").alias("last_generation"),
        F.max_by(had, "generation").alias("assigned"),
    )
    because = F.when(F.col("ended").isNotNull(), F.coalesce("how", F.lit("unknown")))
    return (
        lives.join(departures(log_events), [*_GROUP, "member_id"], "left")
        .withColumn("left_because", because)
        .drop("incarnation", "how")
    )


def _classic(records: DataFrame) -> DataFrame:
    """Classic generations with the columns of epochs. A record is written when the assignment is complete."""
    members = F.transform(
        "members",
        lambda member: F.struct(
            member["member_id"].alias("member_id"),
            member["instance_id"].alias("instance_id"),
            member["client_id"].alias("client_id"),
            member["client_host"].alias("client_host"),
            F.lit(None).cast("int").alias("epoch"),
            member["subscribed"].alias("subscribed"),
            member["assigned"].alias("assigned"),
            F.lit(None).cast("array<struct<topic:string,partition:int>>").alias("owned"),
        ),
    )
    return records.select(
        *_GROUP,
        "offsets_partition",
        "log_offset",
        "generation",
        "is_removal",
        "began",
        F.col("began").alias("settled"),
        "protocol",
        "leader",
        members.alias("roster"),
        F.lit(CLASSIC).alias("kind"),
    )


def _named(epochs: DataFrame, snapshot: DataFrame) -> DataFrame:
    """With names of topics instead of ids, where the snapshot has both."""
    shown = F.translate("body", "+/=", "-_")
    topic_ids = (
        snapshot.where(F.col("kind") == TOPIC_ID).select("cluster", shown.alias("id"), "topic").distinct()
    )
    names = topic_ids.groupBy("cluster").agg(
        F.map_from_entries(F.collect_list(F.struct("id", "topic"))).alias("names")
    )
    return (
        epochs.join(F.broadcast(names), "cluster", "left")
        .withColumn("roster", F.transform("roster", _with_names))
        .drop("names")
    )


def _with_names(member: Column) -> Column:
    for field in ("assigned", "owned"):
        named = F.transform(
            member[field],
            lambda position: position.withField(
                "topic", F.coalesce(F.try_element_at("names", position["topic"]), position["topic"])
            ),
        )
        member = member.withField(field, named)
    return member


def _lives(generations: DataFrame) -> DataFrame:
    """Generations with the time they ended, and their incarnation."""
    by_group = Window.partitionBy(*_GROUP).orderBy("offsets_partition", "log_offset")
    before = by_group.rowsBetween(Window.unboundedPreceding, -1)
    goes_over = (
        (F.col("kind") == CLASSIC)
        & (F.lead("kind").over(by_group) == CONSUMER)
        & (F.lead("began").over(by_group) == F.col("began"))
    )
    lives = (
        generations.withColumn("goes_over", F.col("is_removal") & F.coalesce(goes_over, F.lit(False)))
        .where(~F.col("goes_over"))
        .withColumn(
            "incarnation",
            F.coalesce(F.sum(F.col("is_removal").cast("int")).over(before), F.lit(0)).cast("int"),
        )
        .withColumn("ended", F.lead("began").over(by_group))
    )
    # A generation may be written several times: also when a static member rejoins.
    newest = Window.partitionBy(*_GROUP, "incarnation", "generation").orderBy(F.desc("log_offset"))
    first = Window.partitionBy(*_GROUP, "incarnation", "generation")
    return (
        lives.where(~F.col("is_removal"))
        .withColumn("began", F.min("began").over(first))
        .withColumn("settled", F.min("settled").over(first))
        .withColumn("place", F.row_number().over(newest))
        .where(F.col("place") == 1)
    )


def dated(records: DataFrame, commits: DataFrame) -> DataFrame:
    """Adds `began`: the record's own time, else that of the newest commit before it."""
    partition = ["cluster", "offsets_partition"]
    undated = records.where(F.col("written").isNull()).select(*partition).distinct()
    # Usually there are none, and then no commit is read.
    clock = once(commits.join(F.broadcast(undated), partition, "left_semi"))
    ticks = clock.select(*partition, "log_offset", F.col("committed").alias("tick"))
    by_partition = Window.partitionBy("cluster", "offsets_partition").orderBy("log_offset")
    newest = F.last("tick", ignorenulls=True).over(by_partition)
    return (
        records.unionByName(ticks, allowMissingColumns=True)
        .withColumn("began", F.coalesce("written", newest))
        .where(F.col("key_type").isNotNull())
        .drop("tick")
    )
