"""The guard inside a consumer in Python: a handler for its loggers.

    handler = GuardHandler(on_fatal=close_and_flush, then=exit_process())
    logging.getLogger("kafka").addHandler(handler)                        # kafka-python
    Consumer(settings, logger=logger_that_has_the_handler)                # confluent_kafka

A handler is called by whichever thread logs, which may hold locks of the client: one that closed the consumer
there would wait for itself. So it only notes what it saw; a thread of its own decides, calls the application
and ends or restarts the process.
"""

import contextlib
import logging
import os
import queue
import random
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from kelpie.evidence.logs.layouts import Head, relayed
from kelpie.guard.budget import BackOff, RestartBudget
from kelpie.guard.judgement import Fatal, Judgement, Limits, Sign
from kelpie.guard.sightings import LONGEST_TEXT, LogWatch, Sighting

EXIT_CODE = 70
"""EX_SOFTWARE: whoever supervises the process starts it again."""
RESTARTS = "KELPIE_GUARD_RESTARTS"
"""The environment variable that hands the times of restarts on to the process that follows."""
_LONGEST_WAIT_S = 3600.0
_MOST_CALLBACK_S = 30.0

Action = Callable[[Fatal], Any]


class GuardHandler(logging.Handler):
    """Watches the loggers that it is added to. Give it to the loggers of the client, not to the root logger.

    on_fatal     called first, with what was seen: close the consumer, flush, tell somebody. It has `grace_s`
                 seconds; an exception that it raises is left to `threading.excepthook`
    then         called after that: `exit_process()`, `restart_process()`, or nothing
    patterns     messages of your own that are fatal
    """

    def __init__(
        self,
        on_fatal: Action | None = None,
        *,
        then: Action | None = None,
        patterns: Iterable[str] = (),
        signs: Iterable[Sign] = tuple(Sign),
        limits: Limits | None = None,
        grace_s: float = _MOST_CALLBACK_S,
    ) -> None:
        super().__init__()
        self._on_fatal, self._then, self._grace_s = on_fatal, then, grace_s
        self._patterns = tuple(re.compile(pattern) for pattern in patterns)
        self._watch = LogWatch()
        self._judgement = Judgement(limits or Limits(), frozenset(signs))
        self._sightings: queue.SimpleQueue[Sighting | None] = queue.SimpleQueue()
        self.fatal: Fatal | None = None
        """What was seen, once it was fatal. After that, nothing more is judged."""
        self._thread = threading.Thread(target=self._decide, name="kelpie-guard", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
            if any(pattern.search(message) for pattern in self._patterns):
                self._sightings.put(Sighting(None, message[:LONGEST_TEXT]))
            head = relayed(Head("", record.levelname, record.name, message))
            for sighting in self._watch.entry(head, message):
                self._sightings.put(sighting)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        self._sightings.put(None)
        super().close()

    def _decide(self) -> None:
        while self.fatal is None:
            deadline = self._judgement.deadline
            wait_s = _LONGEST_WAIT_S if deadline is None else max(deadline - time.monotonic(), 0.0)
            try:
                sighting = self._sightings.get(timeout=wait_s)
            except queue.Empty:
                self.fatal = self._judgement.tick(time.monotonic())
                continue
            if sighting is None:
                return
            self.fatal = self._judgement.see(sighting, time.monotonic())
        self._act(self.fatal)

    def _act(self, fatal: Fatal) -> None:
        if self._on_fatal is not None:
            # It may hang as the consumer does, so it gets a thread too, and so much time.
            calling = threading.Thread(
                target=self._on_fatal, args=(fatal,), name="kelpie-guard-callback", daemon=True
            )
            calling.start()
            calling.join(self._grace_s)
        if self._then is not None:
            self._then(fatal)


def exit_process(grace_s: float = 10.0, code: int = EXIT_CODE) -> Action:
    """Ends the process: SIGTERM, which the application may handle; after the grace time, without asking."""

    def end(_: Fatal) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace_s)
        _flush()
        os._exit(code)

    return end


def restart_process(back_off: BackOff | None = None, code: int = EXIT_CODE) -> Action:
    """Starts the same program in this process again, with the same arguments; too often, and it ends.

    Nothing is closed or flushed but standard output and error: `on_fatal` does the rest.
    """
    started = time.monotonic()

    def restart(_: Fatal) -> None:
        now = time.monotonic()
        budget = RestartBudget(back_off or BackOff(), _earlier_restarts(now))
        wait_s = budget.spend(now - started, now, random.random())
        _flush()
        if wait_s is None:
            os._exit(code)
        time.sleep(wait_s)
        os.environ[RESTARTS] = ",".join(f"{moment:.3f}" for moment in budget.restarts)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])

    return restart


def _earlier_restarts(now: float) -> list[float]:
    """The clock goes on while the machine runs. Whatever else stands there is not ours."""
    times: list[float] = []
    for text in os.environ.get(RESTARTS, "").split(","):
        with contextlib.suppress(ValueError):
            times.append(float(text))
    return [moment for moment in times if moment <= now]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
