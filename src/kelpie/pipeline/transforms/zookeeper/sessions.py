"""Which members ZooKeeper expired, and when.

Its log has only the number of the session. Dumps say whose number that is, and so do logs of consumers: the
line about a new session names nobody, and is of the only consumer of that log.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kelpie.observations import EventKind as Kind
from kelpie.pipeline.transforms.zookeeper.events import MEMBER, OF_CONSUMERS, is_a, of_members
from kelpie.pipeline.transforms.zookeeper.snapshots import registrations

_LOG = ["cluster", "source"]
_SESSION = ["cluster", "session"]


def expiries(log_events: DataFrame, snapshot: DataFrame) -> DataFrame:
    """cluster, group, member, expired."""
    session = F.col("details")["session"].alias("session")
    of_logs = _members_of_logs(log_events).join(
        log_events.where(is_a(Kind.ZK_SESSION_BEGUN)).select(*_LOG, session), _LOG
    )
    of_dumps = registrations(snapshot).select(*MEMBER, "session")
    whose = of_logs.select(*MEMBER, "session").union(of_dumps).where(F.col("session").isNotNull()).distinct()
    ended = log_events.where(is_a(Kind.ZK_SERVER_EXPIRED) & F.col("at").isNotNull())
    expired = ended.select("cluster", session, F.col("at").alias("expired"))
    return whose.join(expired, _SESSION).select(*MEMBER, "expired").distinct()


def _members_of_logs(log_events: DataFrame) -> DataFrame:
    """Logs of one consumer, and the consumer."""
    members = of_members(log_events, *OF_CONSUMERS).select(*_LOG, *MEMBER[1:]).distinct()
    return (
        members.groupBy(*_LOG)
        .agg(F.count(F.lit(1)).alias("members"), *(F.max(name).alias(name) for name in MEMBER[1:]))
        .where(F.col("members") == 1)
    )
