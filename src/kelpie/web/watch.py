"""A cluster that is examined again and again in a thread of its own, so that no page waits for it."""

import asyncio
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from kelpie.client.garbage import few_collections
from kelpie.client.loop_thread import LoopThread
from kelpie.doctor.case import Case
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.group_history import GroupHistory, Value, group_history
from kelpie.doctor.overview import GroupOverview
from kelpie.doctor.zookeeper.history import history_in_zookeeper
from kelpie.examination import Examination, Examined
from kelpie.model.time import Instant
from kelpie.web.charts import joined
from kelpie.web.group_past import GroupPast, LongPast, RememberedPast
from kelpie.web.history import History
from kelpie.web.incidents import IncidentLog
from kelpie.web.measures import measured
from kelpie.web.meter import Meter
from kelpie.web.past_looks import PastLooks
from kelpie.web.snapshot import Snapshot

if TYPE_CHECKING:
    from kelpie.web.table_watch import Tables

LONGEST_LOOK_S = 900.0
"""A look that takes longer is given up, so that the next one can begin."""


class Watch:
    """`latest` is the last look that came to an end; None before the first."""

    is_of_tables = False
    """Whether it shows what tables of the pipeline tell, and not a cluster."""

    def __init__(
        self,
        name: str,
        examination: Examination,
        every_s: float,
        finish: Callable[[Diagnosis], Diagnosis] = lambda diagnosis: diagnosis,
        tables: "Tables | None" = None,
        *,
        meter: Meter | None = None,
    ) -> None:
        """`finish`: what is done to each diagnosis before it is shown. `tables`: of the same cluster.
        `meter`: keeps what exporters show.
        """
        self.name = name
        self.every_s = every_s
        self.latest: Snapshot | None = None
        self.failures = 0
        """Looks that ended with a defect of Kelpie's own, one after the other."""
        self.past = PastLooks()
        self.history = History()
        self.incidents = IncidentLog()
        self.tables = tables
        self.meter = meter or Meter()
        self._examination = examination.repeated()
        self._finish = finish
        self._thread = LoopThread(f"kelpie-watch-{name}")

    def __enter__(self) -> "Watch":
        self._thread.start()
        self._thread.run(self._begin)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.stop()

    @property
    def clock(self) -> Callable[[], Instant]:
        return self._examination.clock

    @property
    def changes(self) -> bool:
        """Whether another look may show something else: files stay as they are."""
        return self._examination.settings is not None or self._examination.zookeeper is not None

    @property
    def age_ms(self) -> int | None:
        """How old the last look is."""
        return None if self.latest is None else max(0, self.clock() - self.latest.at)

    def look(self, at: Instant | None = None) -> Snapshot | None:
        """The last one, or of those that are kept the one nearest to a time."""
        return self.latest if at is None else self.past.nearest(at)

    def past_of(self, look: Snapshot, row: GroupOverview, case: Case | None) -> GroupPast:
        """The history of a group: as this look (`case`) and earlier ones tell it, and tables."""
        told = GroupHistory()
        if case is not None and not self.is_of_tables:
            told = history_in_zookeeper(case) if case.in_zookeeper else group_history(case)
        seen = RememberedPast(
            joined(told, self.history.of(row.group) if self.changes else _row_of(look, row)), look.now
        )
        return seen if self.tables is None else LongPast(self.tables.past_of(row.group), seen)

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._look_again_and_again())

    async def _look_again_and_again(self) -> None:
        while True:
            began = self.clock()
            try:
                await self._look(began)
                self.failures = 0
                if self._examination.settings is not None:
                    async with asyncio.timeout(LONGEST_LOOK_S):
                        await self.meter.ask(self._examination.settings)
            except Exception:
                # A look that fails must not end all further looks; pages say that the last one is old.
                self.failures += 1
                traceback.print_exc(file=sys.stderr)
            if not self.changes and self.latest is not None:
                return
            await asyncio.sleep(self.every_s)

    async def _look(self, began: Instant) -> None:
        with few_collections():
            async with asyncio.timeout(LONGEST_LOOK_S):
                examined = await self._examination.examine()
            self._take(examined, began)

    def _take(self, examined: Examined, began: Instant) -> None:
        took_ms = max(0, self.clock() - began)
        finished = examined._replace(diagnosis=self._finish(examined.diagnosis))
        look = Snapshot(finished, began, took_ms)
        self.meter.take(look)
        if look.saw_anything and self.changes:
            self.history.add(look.now, measured(look, self.latest, self.meter.at_rest))
        self.incidents.add(look)
        self.past.add(look)
        self.latest = look


def _row_of(look: Snapshot, row: GroupOverview) -> GroupHistory:
    """What its row says, as the last value of its history."""
    return GroupHistory(
        lag=[Value(look.now, row.lag)] if row.lag is not None else [],
        lag_ms=[Value(look.now, row.lag_ms)] if row.lag_ms is not None else [],
    )
