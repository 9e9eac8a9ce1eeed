"""A stream: the live topic and growing folders into bronze, again and again; and all tables that follow.

    stream = Stream(spark, Lake(tables), cluster="payments", folders=[landing], topic=topic)
    stream.once()            # what is available now
    stream.run(stopped)      # until the event is set

The topic is a query of Structured Streaming. It writes each batch into bronze under the number that Spark's
checkpoint gives it, through the journal: the next start completes a batch that a killed run began, under the
same number. Files of folders are compared with the list in `evidence_file` (`sources.inventory`), which also
recognises a log that has grown; Spark's own file source would read such a log only once.

Derived tables are made by the same graph as in a batch run. They follow step by step (`rounds`), in every
round; traffic by group is made day by day. After that took one minute, as when late evidence makes tables as
a whole, it is done again three minutes later at the earliest. It is always done at the end. A killed stream
needs no repair, for each table knows what it was made of (`derived`).
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

from kelpie.client.client_errors import ClientError
from kelpie.evidence.logs.hints import NO_HINTS, Hints
from kelpie.model.kelpie_error import KelpieError
from kelpie.pipeline.derived import make_derived, number_of
from kelpie.pipeline.graph import JOBS
from kelpie.pipeline.retention.aging import age, told
from kelpie.pipeline.retention.keep import FOR_EVER, Keep
from kelpie.pipeline.run import run
from kelpie.pipeline.sources.topic import intake as topic
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Lake, plain
from kelpie.pipeline.summary import Summary
from kelpie.pipeline.tables import BRONZE
from kelpie.pipeline.tidying import merge_small_files
from kelpie.places import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_PATIENCE_S = 5.0
_LONGEST_PATIENCE_S = 60.0
_PAUSE = 3.0
"""The pause after tables were made, in multiples of that time: a quarter of all time goes there."""
_BETWEEN_SWEEPS = timedelta(minutes=15)
_MOST_RECORDS = 5_000_000
_FOLLOWING = [job for job in JOBS if job.follower is not None]


@dataclass(frozen=True, slots=True)
class Topic:
    """The offsets topic of a cluster, and how to reach it."""

    bootstrap: str
    properties: Mapping[str, str] = field(default_factory=dict)
    properties_file: Path | None = None
    """Where they are from, if executors see that file: see `open_topic`."""
    through: str | None = None
    """Which source reads it; None: the cluster decides (`sources.topic.intake.fitting`)."""


class TopicFailed(KelpieError):
    """The topic could not be read to its end."""


class Stream:
    """One cluster into one lake. One process at a time."""

    def __init__(
        self,
        spark: "SparkSession",
        lake: Lake,
        *,
        cluster: str,
        folders: Sequence[Place] = (),
        topic: Topic | None = None,
        every_s: float = 30.0,
        hints: Hints = NO_HINTS,
        announce: Callable[[str], None] = lambda _: None,
        keep: Keep = FOR_EVER,
    ) -> None:
        self._spark, self._lake, self._cluster = spark, lake, plain(cluster)
        self._folders, self._topic = folders, topic
        self._every_s, self._hints, self._announce = every_s, hints, announce
        self._keep = keep
        self._aged: date | None = None
        """The day on which old rows were looked for the last time."""
        self._made: int | None = None
        """The number of the bronze rows that the derived tables were last made of."""
        self._followed: int | None = None
        """The same of those that follow step by step."""
        self._make_again_at = self._follow_again_at = 0.0
        self._swept = time.monotonic()
        self._from_topic: Counter[str] = Counter()
        """Rows by table."""
        self.summary = Summary(cluster=self._cluster)
        """Of the last round."""

    def once(self) -> Summary:
        """Takes in all that is available now. Raises TopicFailed."""
        query = self._start(available_now=True)
        self._take_in()
        if query is not None:
            try:
                query.awaitTermination()
            except StreamingQueryException as failure:
                raise TopicFailed(_reason(failure)) from None
        self.summary.written = dict(self._from_topic + Counter(self.summary.written))
        self._derive()
        self._age()
        return self.summary

    def run(self, stopped: threading.Event) -> None:
        """Runs rounds until the event is set, then makes the derived tables a last time.

        A query that fails is started again, and its reason is announced.
        """
        query, failed, again_at, patience_s = None, "", 0.0, _PATIENCE_S
        try:
            while not stopped.is_set():
                began = time.monotonic()
                if query is None and self._topic is not None and began >= again_at:
                    try:
                        query, failed, patience_s = self._start(), "", _PATIENCE_S
                    except TopicFailed as failure:
                        failed = self._announce_failure(str(failure), failed)
                        again_at, patience_s = began + patience_s, min(2 * patience_s, _LONGEST_PATIENCE_S)
                self._take_in()
                if time.monotonic() >= self._make_again_at:
                    self._derive()
                    self._age()
                elif time.monotonic() >= self._follow_again_at:
                    self._follow()
                self._tidy()
                if query is not None and not query.isActive:
                    failed = self._announce_failure(_reason(query.exception()), failed)
                    query, again_at = None, began + patience_s
                stopped.wait(max(0.0, self._every_s - (time.monotonic() - began)))
        finally:
            if query is not None:
                query.stop()
        self._derive()

    def _announce_failure(self, reason: str, announced: str) -> str:
        if reason != announced:
            self._announce(f"the topic cannot be read, trying again: {reason}")
        return reason

    def _start(self, *, available_now: bool = False) -> "StreamingQuery | None":
        """Each start chooses the source anew, by the health of the cluster.

        Both sources write offsets in the same form, so they share a checkpoint. Raises TopicFailed.
        """
        if self._topic is None:
            return None
        offsets_topic = self._topic
        try:
            rows = topic.open_topic(
                self._spark,
                offsets_topic.bootstrap,
                streaming=True,
                properties=offsets_topic.properties,
                properties_file=offsets_topic.properties_file,
                most_per_trigger=_MOST_RECORDS,
                through=offsets_topic.through,
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

    def _topic_batch(self, checkpoint: Place, rows: "DataFrame", number: int) -> None:
        # A new checkpoint numbers its batches from 0 again, and has another id.
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
        folders = [folder for folder in self._folders if folder.exists()]
        summary = run(
            self._spark, self._lake, folders, cluster=self._cluster, hints=self._hints, only_bronze=True
        )
        if summary.new_files:
            self._announce(f"{summary.new_files} new files, {sum(summary.written.values()):,} rows")
        self.summary = summary

    def _bronze(self) -> int | None:
        """The number of the rows of bronze; None: there are none."""
        if not any(self._lake.files(table, self._cluster) for table in BRONZE):
            return None
        return number_of(self._lake, self._cluster, [table.name for table in BRONZE])

    def _follow(self) -> None:
        """Makes the tables that follow step by step: a round costs what is new."""
        now = self._bronze()
        if now not in (None, self._made, self._followed):
            began = time.monotonic()
            tables = ClusterTables(self._spark, self._lake, self._cluster)
            make_derived(tables, self.summary, jobs=_FOLLOWING)
            self._followed, ended = now, time.monotonic()
            # Late evidence may make such tables as a whole, too.
            self._follow_again_at = ended + _PAUSE * (ended - began)

    def _derive(self) -> None:
        """Makes all tables whose inputs have changed."""
        now = self._bronze()
        if now in (None, self._made):
            return
        began = time.monotonic()
        any_due = make_derived(ClusterTables(self._spark, self._lake, self._cluster), self.summary)
        self._made, ended = now, time.monotonic()
        self._make_again_at = ended + _PAUSE * (ended - began)
        if any_due:
            worst = ", ".join(f"{count} {word}" for word, count in sorted(self.summary.findings.items()))
            text = f"{self.summary.tables['commit_timeline']:,} commits; findings: {worst or 'none'}"
            self._announce(f"{text} ({ended - began:.1f} s)")

    def _age(self) -> None:
        """Takes rows out that are older than they are kept. Days are kept whole, so it is done once a day."""
        now = datetime.now(UTC)
        if not self._keep or self._aged == now.date():
            return
        tables = ClusterTables(self._spark, self._lake, self._cluster)
        gone = age(tables, self._keep, now, self._announce)
        self._aged = now.date()
        if gone:
            self._announce(told(gone))

    def _tidy(self) -> None:
        """Merges small files, and removes files that no table names any more."""
        merge_small_files(self._lake, self._cluster)
        if time.monotonic() - self._swept > _BETWEEN_SWEEPS.total_seconds():
            self._lake.sweep()
            self._swept = time.monotonic()


def _reason(failure: BaseException | None) -> str:
    """The first line that says something."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return lines[0] if lines else type(failure).__name__
