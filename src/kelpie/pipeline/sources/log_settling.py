"""Rows of logs that were read in ranges, set right: by what the ranges of a file told together."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.evidence.logs.pauses import BACK, limits_of
from kelpie.observations import EventKind
from kelpie.pipeline.sources.log_parts import Merged
from kelpie.pipeline.sources.log_rows import PIECE

_LATE = EventKind.POLL_INTERVAL_EXCEEDED.value
_RETURNS = [kind.value for kind in BACK]


def settled(rows: DataFrame, logs: Mapping[str, Merged]) -> DataFrame:
    """Numbers of lines, zones, groups, pauses; `logs` by source. Rows of other files stay as they are."""
    rows = _placed(rows, logs)
    rows = _attributed(rows, logs)
    late = [name for name, log in logs.items() if log.has_pauses]
    if not late:
        return rows
    concerned = F.col("source").isin(late) & F.col("kind").isin(_LATE, *_RETURNS)
    return rows.where(~concerned).unionByName(_with_pauses(rows.where(concerned), logs))


def _placed(rows: DataFrame, logs: Mapping[str, Merged]) -> DataFrame:
    """Lines are counted from the beginning of the file, times without a zone get it, and the only group."""
    spark = rows.sparkSession
    pieces = [
        (name, piece, before, log.zone_ms, *(log.reader.groups.only() or (None, None)))
        for name, log in logs.items()
        for piece, before in enumerate(log.lines_before)
    ]
    columns = f"source string, {PIECE} int, before bigint, zone_ms bigint, only string, told_only string"
    zoned = F.timestamp_millis(F.unix_millis("at") + F.col("zone_ms"))
    found = (
        rows.join(F.broadcast(spark.createDataFrame(pieces, columns)), ["source", PIECE], "left")
        .withColumn("line", F.col("line") + F.coalesce("before", F.lit(0)))
        .withColumn("at", F.when(F.col("zoned") & (F.col("zone_ms") != 0), zoned).otherwise(F.col("at")))
        .drop("before", "zone_ms")
    )
    repeated = [(name, piece, node) for name, log in logs.items() for piece, node in log.repeated]
    if repeated:
        again = spark.createDataFrame(repeated, f"source string, {PIECE} int, once int")
        found = found.join(F.broadcast(again), ["source", PIECE, "once"], "left_anti")
    return found


def _attributed(rows: DataFrame, logs: Mapping[str, Merged]) -> DataFrame:
    """`Groups.attribute`, for rows of ranges."""
    clients = [
        (name, client, group, f"other lines of {client}")
        for name, log in logs.items()
        for client, group in log.reader.groups.of_client.items()
        if client in log.ungrouped_clients
    ]
    if clients:
        table = rows.sparkSession.createDataFrame(
            clients, "source string, client string, of_client string, told string"
        )
        instance = F.nullif(F.col("details")["instance"], F.lit(""))
        named = rows.withColumn("client", F.coalesce(instance, F.col("client_id"), F.lit("")))
        rows = named.join(F.broadcast(table), ["source", "client"], "left").drop("client")
        group = F.coalesce("of_client", "only")
        told = F.when(F.col("of_client").isNotNull(), F.col("told")).otherwise(F.col("told_only"))
    elif any(log.reader.groups.only() is not None for log in logs.values()):
        group, told = F.col("only"), F.col("told_only")
    else:
        return rows.drop("only", "told_only")
    of_server = F.col("kind").rlike("^(broker|controller): ")
    lacks = F.col("group").isNull() & F.col(PIECE).isNotNull() & ~of_server
    added = F.map_concat("details", F.create_map(F.lit("group_from"), told))
    return (
        rows.withColumn("details", F.when(lacks & group.isNotNull(), added).otherwise(F.col("details")))
        .withColumn("group", F.when(lacks, group).otherwise(F.col("group")))
        .drop("of_client", "told", "only", "told_only")
    )


def _with_pauses(rows: DataFrame, logs: Mapping[str, Merged]) -> DataFrame:
    """`pauses.with_pauses`: the next word of a client that polled too late tells how late."""
    limits = [
        (name, group, limit)
        for name, log in logs.items()
        for group, limit in limits_of(log.reader.settings).items()
    ]
    table = rows.sparkSession.createDataFrame(limits, "source string, group string, configured string")
    later = (
        Window.partitionBy("source", "group", "client_id", F.col("details")["instance"])
        .orderBy("line", "part")
        .rowsBetween(1, Window.unboundedFollowing)
    )
    back = F.first(F.when(F.col("kind").isin(_RETURNS), F.struct("at")), ignorenulls=True).over(later)
    details = F.col("details")
    limit = F.coalesce(F.nullif(details["limit_ms"], F.lit("")), F.col("configured"))
    further = F.unix_millis("back.at") - F.unix_millis("at")
    pause = F.coalesce(details["pause_ms"], limit).cast("bigint") + F.when(further >= 0, further).otherwise(0)
    known = F.map_filter("details", lambda key, _: ~key.isin("limit_ms", "pause_ms"))
    told = F.create_map(F.lit("limit_ms"), limit, F.lit("pause_ms"), pause.cast("string"))
    is_told = (F.col("kind") == _LATE) & F.col(PIECE).isNotNull() & limit.isNotNull()
    return (
        rows.withColumn("back", back)
        .join(F.broadcast(table), ["source", "group"], "left")
        .withColumn("details", F.when(is_told, F.map_concat(known, told)).otherwise(details))
        .drop("back", "configured")
    )
