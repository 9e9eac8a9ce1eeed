"""A cluster that is examined again and again in a thread of its own, so that no page waits for it."""

import asyncio
import sys
import traceback
from collections.abc import Callable

from kelpie.client.loop_thread import LoopThread
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.examination import Examination, Examined
from kelpie.model.time import Instant
from kelpie.web.snapshot import Snapshot


class Watch:
    """`latest` is the last look that came to an end; None before the first."""

    def __init__(
        self,
        name: str,
        examination: Examination,
        every_s: float,
        finish: Callable[[Diagnosis], Diagnosis] = lambda diagnosis: diagnosis,
    ) -> None:
        """`finish`: what is done to each diagnosis before it is shown."""
        self.name = name
        self.every_s = every_s
        self.latest: Snapshot | None = None
        self.failures = 0
        """Looks that ended with a defect of Kelpie's own, one after the other."""
        self._examination = examination
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

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._look_again_and_again())

    async def _look_again_and_again(self) -> None:
        while True:
            began = self.clock()
            try:
                self._take(await self._examination.examine(), began)
                self.failures = 0
            except Exception:
                # A look that fails must not end all further looks; pages say that the last one is old.
                self.failures += 1
                traceback.print_exc(file=sys.stderr)
            if not self.changes and self.latest is not None:
                return
            await asyncio.sleep(self.every_s)

    def _take(self, examined: Examined, began: Instant) -> None:
        took_ms = max(0, self.clock() - began)
        finished = examined._replace(diagnosis=self._finish(examined.diagnosis))
        self.latest = Snapshot(finished, began, took_ms)
