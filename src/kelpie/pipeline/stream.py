"""Running on and on: the live topic and folders that grow, into bronze; and all tables that follow.

    stream = Stream(spark, Lake(tables), cluster="payments", folders=[landing], topic=topic)
    stream.once()            # what is there now
    stream.run(stopped)      # until somebody sets the event

The topic is a query of Structured Streaming. It writes each of its batches into bronze under the number that
Spark's checkpoint gave it, by way of the journal: a batch that was begun by a run that was killed is ended
under the same number, or not counted. Files of folders are known by the list of those that a table has
(`sources.inventory`), which also knows a log that has grown; Spark's own source of files would read it once.

Tables that follow are made by the same graph as in a batch run, of all that a cluster has in bronze. That
takes the longer the more there is, so it is not done in every round: after it has taken a minute, the next
time is three minutes later at the earliest, while bronze goes on being filled. In the end it is always done.
Who is killed before need make up for nothing else: tables know what they were made of (`inputs`).
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

from kelpie.client.client_errors import ClientError
from kelpie.evidence.logs.hints import NO_HINTS, Hints
from kelpie.pipeline.run import Derived, Summary, take_in
from kelpie.pipeline.sources.topic import intake as topic
from kelpie.pipeline.storage.inputs import number_of
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.names import plain
from kelpie.pipeline.tables import BRONZE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_PATIENCE_S = 5.0
_LONGEST_PATIENCE_S = 60.0
_PAUSE = 3.0
"""So many times as long as it took to make tables, they are not made again: a quarter of the time at most."""
_MOST_FILES = 64
_BETWEEN_SWEEPS = timedelta(minutes=15)
_MOST_RECORDS = 5_000_000


@dataclass(frozen=True, slots=True)
class Topic:
    """The offsets topic of a cluster, and how to reach it."""

    bootstrap: str
    properties: Mapping[str, str] = field(default_factory=dict)
    through: str | None = None
    """Which source reads it; the cluster is asked if nobody says."""


class TopicFailed(Exception):
    """The topic could not be read to its end."""


class Stream:
    """One cluster into one lake. One process at a time."""

    def __init__(
        self,
        spark: "SparkSession",
        lake: Lake,
        *,
        cluster: str,
        folders: Sequence[Path] = (),
        topic: Topic | None = None,
        every_s: float = 30.0,
        hints: Hints = NO_HINTS,
        announce: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._spark, self._lake, self._cluster = spark, lake, plain(cluster)
        self._folders, self._topic = folders, topic
        self._every_s, self._hints, self._announce = every_s, hints, announce
        self._made: int | None = None
        """What the other tables were last made of."""
        self._make_again_at = 0.0
        self._swept = time.monotonic()
        self._from_topic: Counter[str] = Counter()
        """Rows by table."""
        self.summary = Summary(cluster=self._cluster)
        """Of the last round."""

    def once(self) -> Summary:
        """All that is there now. Raises TopicFailed."""
        query = self._start(available_now=True)
        self._take_in()
        if query is not None:
            try:
                query.awaitTermination()
            except StreamingQueryException as failure:
                raise TopicFailed(_reason(failure)) from None
        self.summary.written = dict(self._from_topic + Counter(self.summary.written))
        self._derive()
        return self.summary

    def run(self, stopped: threading.Event) -> None:
        """Rounds until somebody stops it, then tables of all that has come.

        A query that fails is started again, and the reason is told.
        """
        query, failed, again_at, patience_s = None, "", 0.0, _PATIENCE_S
        try:
            while not stopped.is_set():
                began = time.monotonic()
                if query is None and self._topic is not None and began >= again_at:
                    try:
                        query, failed, patience_s = self._start(), "", _PATIENCE_S
                    except TopicFailed as failure:
                        failed = self._tell_failure(str(failure), failed)
                        again_at, patience_s = began + patience_s, min(2 * patience_s, _LONGEST_PATIENCE_S)
                self._take_in()
                if time.monotonic() >= self._make_again_at:
                    self._derive()
                self._tidy()
                if query is not None and not query.isActive:
                    failed = self._tell_failure(_reason(query.exception()), failed)
                    query, again_at = None, began + patience_s
                stopped.wait(max(0.0, self._every_s - (time.monotonic() - began)))
        finally:
            if query is not None:
                query.stop()
        self._derive()

    def _tell_failure(self, reason: str, told: str) -> str:
        if reason != told:
            self._announce(f"the topic cannot be read, trying again: {reason}")
        return reason

    def _start(self, *, available_now: bool = False) -> "StreamingQuery | None":
        """Which source reads may change from start to start, with the health of the cluster.

        Both count in the same words, so they share a checkpoint. Raises TopicFailed.
        """
        if self._topic is None:
            return None
        it = self._topic
        try:
            rows = topic.open_topic(
                self._spark,
                it.bootstrap,
                streaming=True,
                properties=it.properties,
                most_per_trigger=_MOST_RECORDS,
                through=it.through,
            )
        except ClientError as error:
            raise TopicFailed(str(error)) from None
        checkpoint = self._lake.root / "_checkpoints" / f"topic-{self._cluster}"
        batch = partial(self._topic_batch, checkpoint)
        writer = rows.writeStream.queryName(f"topic of {self._cluster}").foreachBatch(batch)
        writer = writer.option("checkpointLocation", str(checkpoint))
        if available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(
            processingTime=f"{max(1, round(self._every_s * 1000 / 3))} milliseconds"
        ).start()

    def _topic_batch(self, checkpoint: Path, rows: "DataFrame", number: int) -> None:
        # Whoever deletes the checkpoint begins to count anew, under another id.
        counted_by = json.loads((checkpoint / "metadata").read_text())["id"]
        assert self._topic is not None
        done = topic.take_in(
            self._lake,
            rows,
            cluster=self._cluster,
            application=f"topic of {self._cluster}, {counted_by}",
            version=number,
            epochs=topic.leader_epochs(self._topic.bootstrap, self._topic.properties),
        )
        self._from_topic.update(done.rows)

    def _take_in(self) -> None:
        if not self._folders:
            return
        there = [folder for folder in self._folders if folder.exists()]
        summary = take_in(self._spark, self._lake, there, cluster=self._cluster, hints=self._hints)
        if summary.new_files:
            self._announce(f"{summary.new_files} new files, {sum(summary.written.values()):,} rows")
        self.summary = summary

    def _derive(self) -> None:
        """All tables whose inputs have changed."""
        bronze = [table.name for table in BRONZE]
        now = number_of(self._lake, self._cluster, bronze)
        if now == self._made or not any(self._lake.files(table, self._cluster) for table in BRONZE):
            return
        began = time.monotonic()
        did = Derived(self._spark, self._lake, self.summary, lambda _: None).make()
        self._made, ended = now, time.monotonic()
        self._make_again_at = ended + _PAUSE * (ended - began)
        if did:
            worst = ", ".join(f"{count} {word}" for word, count in sorted(self.summary.findings.items()))
            told = f"{self.summary.tables['commit_timeline']:,} commits; findings: {worst or 'none'}"
            self._announce(f"{told} ({ended - began:.1f} s)")

    def _tidy(self) -> None:
        """Many small files become few; those that no table knows any more go."""
        for table in BRONZE:
            if self._lake.fragments(table, self._cluster) > _MOST_FILES:
                self._lake.compact(table, self._cluster)
        if time.monotonic() - self._swept > _BETWEEN_SWEEPS.total_seconds():
            self._lake.sweep()
            self._swept = time.monotonic()


def _reason(failure: BaseException | None) -> str:
    """The first line that says something."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return lines[0] if lines else type(failure).__name__
