"""Lines of consumers of Kafka 0.8: whose they are, in the order in which each consumer wrote them."""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from kelpie.observations import EventKind

OF_ZOOKEEPER = "zookeeper"
"""How the kinds of rows begin that consumers of Kafka 0.8, ZooKeeper and its dumps give."""
OF_CONSUMERS = tuple(kind for kind in EventKind if kind.value.startswith(f"{OF_ZOOKEEPER}: "))
GROUP = ["cluster", "group"]
MEMBER = [*GROUP, "member"]
RELEASED, CLOSED, EXPIRED = "released", "closed", "expired"
"""How ownership ends, and membership."""
GROUP_ID = "group.id"
_OF_CONSUMER = "consumer "
_ORDER = ["at", "source", "line", "part"]


def configured(log_events: DataFrame, snapshot: DataFrame) -> DataFrame:
    """Events with the group that the settings of their consumer name.

    The group is part of a consumer's id. An id of no usual form does not show where the group's name ends.
    """
    setting = {name: F.get_json_object("body", f"$.{name}") for name in ("of", "name", "value")}
    settings = snapshot.where((F.col("kind") == "setting") & (setting["name"] == GROUP_ID))
    of_consumers = settings.where(setting["of"].startswith(_OF_CONSUMER)).select(
        "cluster",
        F.substring(setting["of"], len(_OF_CONSUMER) + 1, 2**31 - 1).alias("member"),
        setting["value"].alias("configured"),
    )
    groups = of_consumers.groupBy("cluster", "member").agg(F.max("configured").alias("configured"))
    own = F.when(F.col("kind").startswith(OF_ZOOKEEPER), F.col("configured"))
    return (
        log_events.join(F.broadcast(groups), ["cluster", "member"], "left")
        .withColumn("group", F.coalesce(own, "group"))
        .select(*log_events.columns)
    )


def of_members(log_events: DataFrame, *kinds: EventKind) -> DataFrame:
    """Events of these kinds that have a time, a group and a member."""
    complete = [F.col(name).isNotNull() for name in ("at", "group", "member")]
    known = complete[0] & complete[1] & complete[2]
    return log_events.where(F.col("kind").isin(*(kind.value for kind in kinds)) & known)


def in_order() -> WindowSpec:
    """The events of a member, up to each."""
    return Window.partitionBy(*MEMBER).orderBy(*_ORDER)


def backwards() -> WindowSpec:
    return Window.partitionBy(*MEMBER).orderBy(*map(F.desc, _ORDER))


def is_a(*kinds: EventKind) -> Column:
    return F.col("kind").isin(*(kind.value for kind in kinds))


def consumer_of(thread: Column) -> Column:
    """The consumer of a thread's id."""
    return F.regexp_replace(thread, "-[^-]*$", "")
