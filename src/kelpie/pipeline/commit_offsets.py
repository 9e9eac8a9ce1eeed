"""Spark's streaming queries, seen by every tool that shows groups: their progress is committed to a group.

    spark.streams.addListener(CommitOffsets(group="spark-orders", bootstrap="kafka-1:9092"))

Structured Streaming keeps its place in checkpoints and commits nothing to Kafka, so tools that watch lag do
not see its queries. This listener hears of every batch that is done, and has it committed (committing.py).
"""

import logging
import threading
from collections.abc import Mapping

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from kelpie.client.properties import settings_of
from kelpie.pipeline.committing import FLUSH_S, PATIENCE_S, Committer
from kelpie.pipeline.query_progress import progress_of

_log = logging.getLogger(__name__)
_QUERY = "{query}"


class CommitOffsets(StreamingQueryListener):
    """Commits the progress of a query to a group.

    `group`: its name. If it holds "{query}", each query has a group of its own, with the query's name in that
    place, or its id if it has none. `bootstrap`: brokers, as in kafka.bootstrap.servers. `properties`: those
    of a Kafka client, for security; Spark's options of the same names, with "kafka." in front, will do, and
    bootstrap.servers may be among them. `query`: name or id of the only query to commit for.
    """

    def __init__(
        self,
        group: str,
        bootstrap: str | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        query: str | None = None,
        patience_s: float = PATIENCE_S,
        flush_s: float = FLUSH_S,
    ) -> None:
        """Raises BadSettings."""
        if not group:
            raise ValueError("a group must have a name")
        client_properties = {name.removeprefix("kafka."): value for name, value in (properties or {}).items()}
        self._committer = Committer(
            settings_of(client_properties, bootstrap), patience_s=patience_s, flush_s=flush_s
        )
        self._group, self._query = group, query
        self._lock = threading.Lock()
        self._owners: dict[str, str] = {}
        """By group: the query that it is of, while that query runs."""

    # What Spark says. Nothing here may take time, or raise.

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's word.
        if self._is_mine(str(event.id), event.name):
            self._committer.expect(str(event.runId))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's word.
        try:
            self._hear(event)
        except Exception:  # Whatever it is: the query must not suffer.
            _log.exception("The progress of a query could not be understood; nothing is committed for it.")

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's word.
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's word.
        with self._lock:
            self._owners = {group: query for group, query in self._owners.items() if query != str(event.id)}
        self._committer.ended(str(event.runId))

    def flush(self, limit_s: float = FLUSH_S) -> bool:
        """Wait until all that Spark has told so far is committed, or given up. Whether it is, in time."""
        return self._committer.flush(limit_s)

    def _is_mine(self, query_id: str, name: str | None) -> bool:
        return self._query is None or self._query in (query_id, name)

    def _hear(self, event: QueryProgressEvent) -> None:
        progress = progress_of(event.progress)
        if not self._is_mine(progress.query, progress.name):
            return
        tell = self._committer.logged.tell
        if not progress.offsets:
            tell(progress.query, "sources", logging.INFO, f"{progress} reads no topic of Kafka.")
            return
        group = self._group.replace(_QUERY, progress.name or progress.query)
        with self._lock:
            owner = self._owners.setdefault(group, progress.query)
        if owner == progress.query:
            self._committer.offer(group, progress)
            return
        tell(
            group,
            progress.query,
            logging.WARNING,
            f"{progress} is not committed: group {group} is that of query {owner}, which runs as well. Name "
            f'the query that is meant (query=…), or give each a group of its own (group="{group}-{_QUERY}").',
        )
