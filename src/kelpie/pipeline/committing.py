"""Commits the progress of queries in a thread of its own: the caller never waits.

- Each batch once, never backwards: what is stored says of which query and batch it is (in the metadata of the
  commit), and is read before the first commit, and before one is repeated whose answer did not come. When
  batches end faster than they can be committed, the newest stands for all.
- No more is held than the newest progress of each query.
- What is left when the program ends is committed first, within a limit.
- What goes wrong is logged, once, until it goes well again.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from kelpie.client.settings import Settings
from kelpie.model.names import TopicPartition
from kelpie.observations import Committed
from kelpie.pipeline.group_offsets import CommitDelayed, CommitRefused, GroupOffsets
from kelpie.pipeline.query_progress import QueryProgress, mark_of

_log = logging.getLogger(__name__)

PATIENCE_S = 300.0
"""So long a commit is tried again; then the next progress begins anew."""
FLUSH_S = 10.0
"""So long the end of the program waits for what is not committed yet."""
_LAST_EVENTS_S = 2.0
"""So long it waits for the last words of a query that was not seen to end."""
_LINGER_S = 60.0
"""A thread that has had nothing to do for so long ends, and its connections with it."""
_LOOK_S = 0.25
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_QUIET_ATTEMPTS = 2
"""So many attempts may fail without a message: a connection was idle, or a coordinator has just moved."""
_UNKNOWN = -1

_Key = tuple[str, str]
"""Group and query."""


class LoggedOnce:
    """Remembers what was logged, so that it is not logged again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: set[tuple[str, str]] = set()

    def tell(self, group: str, kind: str, level: int, text: str) -> None:
        with self._lock:
            is_known = (group, kind) in self._known
            self._known.add((group, kind))
        if not is_known:
            _log.log(level, "%s", text)

    def forget(self, group: str, *kinds: str) -> None:
        with self._lock:
            self._known -= {(group, kind) for kind in kinds}


@dataclass(slots=True)
class _Standing:
    """What is known to be stored of a query."""

    batch: int = _UNKNOWN
    offsets: dict[TopicPartition, int] = field(default_factory=dict)


class Committer:
    """One cluster, any number of groups."""

    def __init__(
        self, settings: Settings, *, patience_s: float = PATIENCE_S, flush_s: float = FLUSH_S
    ) -> None:
        self.logged = LoggedOnce()
        self._settings = settings
        self.patience_s, self.flush_s = patience_s, flush_s
        self._lock = threading.Condition()
        self._waiting: dict[_Key, QueryProgress] = {}
        """The newest progress that was not taken up yet."""
        self._busy: set[_Key] = set()
        self._running: set[str] = set()
        self._thread: threading.Thread | None = None

    def expect(self, run: str) -> None:
        """A run of a query has begun."""
        with self._lock:
            self._running.add(run)
            self._wake()

    def ended(self, run: str) -> None:
        """All of its progress has been offered."""
        with self._lock:
            self._running.discard(run)

    def offer(self, group: str, progress: QueryProgress) -> None:
        with self._lock:
            key = group, progress.query
            before = self._waiting.get(key)
            if before is None or before.batch < progress.batch:
                self._waiting[key] = progress
            self._wake()

    def flush(self, limit_s: float) -> bool:
        """Wait until all that was offered is committed, or given up. Whether it is, in time."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._waiting and not self._busy, limit_s)

    def _wake(self) -> None:
        """Have a thread that works. The lock is held."""
        if self._thread is None:
            # No daemon: Python waits for it at the end, so the last commit is not lost.
            self._thread = threading.Thread(target=self._work, name="kelpie-commits")
            self._thread.start()

    def _work(self) -> None:
        try:
            asyncio.run(_Work(self._settings, self).serve())
        except Exception:
            _log.exception("Committing has failed; the next progress begins anew.")
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None
                    self._busy.clear()
                self._lock.notify_all()

    # What the thread asks.

    def take(self) -> list[tuple[_Key, QueryProgress]]:
        """The progress that no task works on."""
        with self._lock:
            mine = [key for key in self._waiting if key not in self._busy]
            self._busy.update(mine)
            return [(key, self._waiting.pop(key)) for key in mine]

    def newest(self, key: _Key, progress: QueryProgress) -> QueryProgress:
        """Progress that has come since a task began to work on it."""
        with self._lock:
            return self._waiting.pop(key, progress)

    def done(self, key: _Key) -> None:
        with self._lock:
            self._busy.discard(key)
            self._lock.notify_all()

    def may_end(self, idle_since: float, ended_s: float | None) -> bool:
        """Whether the thread may end; then it must. `ended_s`: see `_Work`."""
        with self._lock:
            if self._waiting or self._busy:
                return False
            if ended_s is not None:
                may = not self._running or ended_s > _LAST_EVENTS_S
            else:
                may = not self._running and time.monotonic() - idle_since > _LINGER_S
            if may:
                self._thread = None
            return may


class _Work:
    """What only the thread uses: connections, and what it knows to be stored."""

    def __init__(self, settings: Settings, committer: Committer) -> None:
        self._kafka = GroupOffsets(settings)
        self._committer = committer
        self._tell = committer.logged.tell
        self._standings: dict[_Key, _Standing] = {}
        self._ended_at: float | None = None

    @property
    def _ended_s(self) -> float | None:
        """For how many seconds the program has been ending: its main thread is gone. None: it runs."""
        if self._ended_at is None and not threading.main_thread().is_alive():
            self._ended_at = time.monotonic()
        return None if self._ended_at is None else time.monotonic() - self._ended_at

    async def serve(self) -> None:
        idle_since = time.monotonic()
        tasks: set[asyncio.Task[None]] = set()
        try:
            while not self._committer.may_end(idle_since, self._ended_s):
                for key, progress in self._committer.take():
                    tasks.add(asyncio.create_task(self._see_to(key, progress)))
                if tasks:
                    done, tasks = await asyncio.wait(
                        tasks, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED
                    )
                    for task in done:
                        task.result()
                    idle_since = time.monotonic()
                else:
                    await asyncio.sleep(_LOOK_S)
        finally:
            for task in tasks:
                task.cancel()
            await self._kafka.close()

    async def _see_to(self, key: _Key, progress: QueryProgress) -> None:
        try:
            await self._commit(key, progress, self._standings.setdefault(key, _Standing()))
        finally:
            self._committer.done(key)

    async def _commit(self, key: _Key, progress: QueryProgress, standing: _Standing) -> None:
        """Until it is done, refused, or too late."""
        group, _ = key
        began, pause, attempts = time.monotonic(), _FIRST_PAUSE_S, 0
        while True:
            attempts += 1
            try:
                await self._once(group, progress, standing)
            except CommitRefused as error:
                self._tell(group, "refused", logging.ERROR, f"{progress} is not committed: {error}")
                return
            except CommitDelayed as error:
                standing.batch = _UNKNOWN  # It may have been done all the same: look before it is done again.
                gone = time.monotonic() - began
                if gone > self._committer.patience_s or (self._ended_s or 0.0) > self._committer.flush_s:
                    self._tell(
                        group,
                        "given up",
                        logging.ERROR,
                        f"{progress} was not committed within {gone:.0f} s, and will not be; a later batch "
                        f"will stand for it. {error}",
                    )
                    return
                if attempts > _QUIET_ATTEMPTS:
                    text = f"{progress} cannot be committed yet. {error}"
                    self._tell(group, "waiting", logging.WARNING, text)
            else:
                if attempts > _QUIET_ATTEMPTS:
                    took = time.monotonic() - began
                    _log.info("%s is committed, after %d attempts in %.1f s.", progress, attempts, took)
                self._committer.logged.forget(group, "refused", "given up", "waiting")
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
            progress = self._committer.newest(key, progress)

    async def _once(self, group: str, progress: QueryProgress, standing: _Standing) -> None:
        if standing.batch >= progress.batch:
            return
        stored: Mapping[TopicPartition, Committed] = {}
        known = standing.offsets
        # A query that seems to go back may read a topic that was made anew.
        goes_back = any(known.get(name, 0) > offset for name, offset in progress.offsets.items())
        if standing.batch == _UNKNOWN or goes_back:
            stored = await self._kafka.committed(group, progress.offsets)
        todo = self._due(group, progress, stored)
        if todo:
            refused = await self._kafka.commit(group, todo, progress.mark)
            for name, reason in refused.items():
                text = f"Group {group}: {name} is not committed: {reason}"
                self._tell(group, str(name), logging.WARNING, text)
        standing.batch, standing.offsets = progress.batch, dict(progress.offsets)

    def _due(
        self, group: str, progress: QueryProgress, stored: Mapping[TopicPartition, Committed]
    ) -> dict[TopicPartition, int]:
        """What is not stored yet, and would not take the group back."""
        due = {}
        for name, offset in progress.offsets.items():
            committed = stored.get(name)
            if committed is not None:
                query, batch = mark_of(committed.metadata)
                if query == progress.query and batch >= progress.batch:
                    continue
                if committed.offset > offset:
                    self._tell(
                        group,
                        "ahead",
                        logging.WARNING,
                        f"{progress} stands at {offset} of {name}, and group {group} at {committed.offset}: "
                        "groups are never taken back, so nothing is committed there until the query is past "
                        "that. If the query begins anew on purpose, delete the group, or name another one.",
                    )
                    continue
            due[name] = offset
        return due
