"""A lake that logs go into, again and again, as a stream does it."""

from pathlib import Path

from pyspark.sql import SparkSession

from kelpie.observations import Event
from kelpie.pipeline.sources.logs.intake import change_rows, correct, event_of, read_logs, write_logs
from kelpie.pipeline.sources.logs.progress import Ledger
from kelpie.pipeline.sources.logs.rows import EVENTS
from kelpie.pipeline.storage.lake import Lake
from tests.pipeline.sources.logs.log_texts import by_the_evidence, item, plain


class Growing:
    """Logs that are taken in again and again, into one table."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.lake, self.staging = spark, Lake(folder / "lake"), folder / "rows"
        self.staging.mkdir()
        self.batch = 0
        self.anew = 0
        """How often all of one was read again."""
        self.changed: list[str] = []
        """Those that were others when they had been read, the last time."""
        self.notes: list[str] = []

    def take_in(self, *paths: Path, committed: bool = True) -> list[Event]:
        """All events that there are by now, by their lines."""
        self.batch += 1
        ledger = Ledger(self.lake, "c", "logs", self.notes)
        items = [item(path) for path in paths]
        told = read_logs(self.spark, items, self.staging, ledger, range_bytes=3001)
        self.changed = [log.reading.name for log in told if log.changed]
        told = [log for log in told if not log.reason]
        correct(told, {})
        files = write_logs(self.spark, told, self.lake.path(EVENTS), "c")
        ledger.save([log.progress for log in told if log.progress is not None], self.batch)
        if not committed:
            return []
        self.anew += sum(len(log.replaces) for log in told)
        change_rows(self.lake, "c", told)
        self.lake.add(EVENTS, files, application="logs", version=self.batch)
        rows = self.lake.rows(EVENTS, "c").to_pylist()
        rows.sort(key=lambda row: (row["line"], row["part"]))
        return [event_of(row) for row in rows]


def wanted(path: Path) -> list[Event]:
    return plain(by_the_evidence(path, path.name).observations.events)
