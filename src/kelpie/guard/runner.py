"""Runs the machine of `supervision` on a real process: threads bring events, one thread carries out orders.

    pumps, files ──lines──► sightings ─┐
    waiter ──────exit, group is empty──┼─► queue ─► Supervision ─► orders: start, signal, say, finish
    signals ───────────────────────────┘

The thread that ends and restarts the process is none of those that read its output (`pump` says why).
"""

import math
import queue
import random
import re
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from kelpie.guard.guard_errors import GuardFailed
from kelpie.guard.log_files import LogFollower
from kelpie.guard.metrics import Textfile, exposition
from kelpie.guard.metrics_server import LOOPBACK, MetricsServer
from kelpie.guard.process import GuardedProcess, Stream
from kelpie.guard.pump import Outlet
from kelpie.guard.sightings import LogWatch, OwnNames, Sighting
from kelpie.guard.signals import Signals
from kelpie.guard.speaker import Speaker
from kelpie.guard.supervision import Ending, Finish, Order, Pass, Phase, Policy, Say, Start, Supervision

PASSED_ON = tuple(
    getattr(signal, f"SIG{name}")
    for name in ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH", "CONT")
    if hasattr(signal, f"SIG{name}")
)
_LONGEST_WAIT_S = 3600.0
_STOPPING_S = 5.0
"""So long a guard that was told to end waits for somebody to read the rest of the output."""


@dataclass(frozen=True, slots=True)
class GuardOptions:
    command: tuple[str, ...]
    policy: Policy = field(default_factory=Policy)
    streams: tuple[Stream, ...] = ("stderr",)
    files: tuple[Path, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()
    name: str = ""
    """In metrics; the program's name if empty."""
    log: Path | None = None
    """Where the guard's own lines go; standard error if None."""
    textfile: Path | None = None
    port: int | None = None


class Guard:
    """One guard, in the main thread of its process."""

    def __init__(self, options: GuardOptions) -> None:
        self._options = options
        self._supervision = Supervision(options.policy, random.random)
        self._events: queue.SimpleQueue[Callable[[float], Sequence[Order]]] = queue.SimpleQueue()
        self._outlets: dict[Stream, Outlet] = {"stdout": Outlet(1), "stderr": Outlet(2)}
        self._speaker = Speaker(options.log, self._outlets["stderr"])
        self._textfile = Textfile(options.textfile, self._metrics, self._speaker.say_once)
        self._process: GuardedProcess | None = None
        self._run = 0
        self._watches: dict[Path, LogWatch] = {}
        self._given_up = threading.Event()
        """Set when nobody waits any more for the group of the last run to become empty."""
        self._started_at = 0.0
        self._follower: LogFollower | None = None
        self._server: MetricsServer | None = None
        self._ending: Ending | None = None

    def run(self) -> Ending:
        """Returns when the guard is done. Raises GuardFailed."""
        options = self._options
        self._speaker.open()
        self._textfile.open()
        if options.port is not None:
            self._server = MetricsServer(options.port, self._metrics)
            if options.port == 0:
                self._speaker.say(f"answers at http://{LOOPBACK}:{self._server.port}/metrics")
        signals = Signals(PASSED_ON, self._on_signal)
        try:
            if options.files:
                self._follower = LogFollower(options.files, self._file_line)
            self._carry_out(self._supervision.begin(time.monotonic()))
            if self._follower is not None:
                self._follower.start()
            while self._ending is None:
                self._step()
        finally:
            if self._follower is not None:
                self._follower.stop()
            signals.close()
        self._textfile.write()
        # From here on, signals end the guard while it waits for a slow reader.
        if self._process is not None:
            self._process.finish_output(_STOPPING_S if self._supervision.stopping else math.inf)
        self._speaker.finish()
        if self._server is not None:
            self._server.close()
        return self._ending

    def _on_signal(self, number: int) -> None:
        self._events.put(lambda _: self._supervision.signal(number))

    def _step(self) -> None:
        deadline = self._supervision.deadline
        now = time.monotonic()
        wait_s = _LONGEST_WAIT_S if deadline is None else max(deadline - now, 0.0)
        try:
            event = self._events.get(timeout=min(wait_s, self._textfile.wait_s(now)))
        except queue.Empty:
            self._carry_out(self._supervision.tick(time.monotonic()))
        else:
            self._carry_out(event(time.monotonic()))
        self._textfile.write_if_due(time.monotonic())

    def _carry_out(self, orders: Sequence[Order]) -> None:
        for order in orders:
            match order:
                case Start():
                    self._start()
                case Pass(number):
                    if self._process is not None:
                        self._process.signal(number)
                case Say(text):
                    self._speaker.say(text)
                case Finish(ending):
                    self._given_up.set()
                    self._ending = ending
        self._textfile.changed()

    def _start(self) -> None:
        self._run += 1
        self._given_up.set()
        self._given_up = threading.Event()
        names = OwnNames()
        patterns = self._options.patterns
        self._watches = {path: LogWatch(patterns, names) for path in self._options.files}
        on_line = {
            stream: partial(self._line, self._run, LogWatch(patterns, names))
            for stream in self._options.streams
        }
        try:
            self._process = GuardedProcess(self._options.command, self._outlets, on_line)
        except OSError as error:
            self._could_not_start(error)
            return
        self._started_at = time.time()
        waiting = threading.Thread(
            target=self._wait, args=(self._process, self._given_up), name="kelpie-guard-waiter", daemon=True
        )
        waiting.start()

    def _could_not_start(self, error: OSError) -> None:
        reason = f"{self._options.command[0]} cannot be started: {error.strerror}."
        if self._run == 1:
            status = 127 if isinstance(error, FileNotFoundError) else 126
            raise GuardFailed(reason, status)
        self._events.put(partial(self._supervision.could_not_start, reason))

    def _wait(self, process: GuardedProcess, given_up: threading.Event) -> None:
        """In a thread of its own."""
        ending = process.wait()
        if self._follower is not None:
            self._follower.catch_up()
        is_empty = process.group_is_empty()
        self._events.put(lambda now: self._supervision.exited(ending, group_is_empty=is_empty, now=now))
        if not is_empty and process.wait_for_group(given_up):
            self._events.put(self._supervision.group_emptied)

    def _line(self, run: int, watch: LogWatch, line: str) -> None:
        """In the thread of a pump, or of the files."""
        for sighting in watch.line(line):
            self._events.put(partial(self._seen, run, sighting))

    def _seen(self, run: int, sighting: Sighting, now: float) -> list[Order]:
        """What an earlier run wrote, and is read only now, does not count."""
        return self._supervision.see(sighting, now) if run == self._run else []

    def _file_line(self, path: Path, line: str) -> None:
        watch = self._watches.get(path)
        if watch is not None:
            self._line(self._run, watch, line)

    def _metrics(self) -> str:
        name = self._options.name or Path(self._options.command[0]).name
        supervision = self._supervision
        running = supervision.phase in (Phase.RUNNING, Phase.ENDING)
        return exposition(name, supervision.counts, running=running, started_at=self._started_at)
