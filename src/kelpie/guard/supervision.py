"""The life of a guarded process as a machine: events go in, orders come out. No input or output.

    RUNNING ──fatal──► ENDING ──process and its group are gone──► WAITING ──back-off is over──► RUNNING
       │                  └──grace time is over: SIGKILL               └──restarted too often──► DONE
       └──exits──► ENDING (what is left of its group) ──► DONE, or WAITING if a fatal line was seen

- A process that ends by itself, without a fatal line, ends the guard too, with the same exit code or signal.
- SIGTERM and SIGINT are passed on, and nothing is restarted any more. Other signals are only passed on.
- Signals go to the whole process group. A restart waits until the group is empty: two consumers where one
  was wanted would be worse than none.
- Times are of a clock that never jumps (time.monotonic).
"""

import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from kelpie.guard.budget import BackOff, RestartBudget
from kelpie.guard.judgement import Fatal, Judgement, Limits, Sign, sign_of
from kelpie.guard.sightings import LONGEST_TEXT, Sighting
from kelpie.model.quoting import harmless
from kelpie.model.words import counted

FAILED = 1
"""The exit code of a guard that gave up on a process which itself ended with 0."""
_LAST_PATIENCE_S = 10.0
"""After SIGKILL. A process that outlives it hangs in the kernel, and is left behind."""
_ENDS_ALL = (signal.SIGTERM, signal.SIGINT)
_ENDS_WAITING = (*_ENDS_ALL, signal.SIGHUP, signal.SIGQUIT)


class Phase(Enum):
    RUNNING = "running"
    ENDING = "ending"
    WAITING = "waiting"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended: with a code, or by a signal."""

    code: int = 0
    signal: int | None = None

    def __str__(self) -> str:
        return f"with code {self.code}" if self.signal is None else f"by {name_of(self.signal)}"


@dataclass(frozen=True, slots=True)
class Start:
    """Start the process."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Send a signal to the process group."""

    signal: int


@dataclass(frozen=True, slots=True)
class Say:
    """Write one line to the guard's log."""

    text: str


@dataclass(frozen=True, slots=True)
class Finish:
    """End the guard in the same way."""

    ending: Ending


Order = Start | Pass | Say | Finish


@dataclass(frozen=True, slots=True)
class Policy:
    grace_s: float = 30.0
    """Between SIGTERM and SIGKILL."""
    back_off: BackOff = field(default_factory=BackOff)
    limits: Limits = field(default_factory=Limits)
    signs: frozenset[Sign] = frozenset(Sign)
    """Those that lead to a restart."""


@dataclass(slots=True)
class Counts:
    """What metrics show."""

    starts: int = 0
    sightings: Counter[Sign] = field(default_factory=Counter)
    restarts: Counter[Sign] = field(default_factory=Counter)
    kills: int = 0
    gave_up: bool = False


class Supervision:
    """One guard. `chance` returns a number from 0 to 1."""

    def __init__(self, policy: Policy, chance: Callable[[], float]) -> None:
        self._policy, self._chance = policy, chance
        self._budget = RestartBudget(policy.back_off)
        self._judgement = Judgement(policy.limits, policy.signs)
        self.phase = Phase.WAITING
        self.counts = Counts()
        self._started = self._ended_since = 0.0
        self._deadline: float | None = None
        """Of the grace time, or of the back-off."""
        self._fatal: Fatal | None = None
        self._ending: Ending | None = None
        self._asked_to_end = self._killed = False
        self.stopping = False
        """The guard was told to end: nothing is restarted any more."""

    @property
    def deadline(self) -> float | None:
        """When `tick` is due."""
        return self._judgement.deadline if self.phase is Phase.RUNNING else self._deadline

    def begin(self, now: float) -> list[Order]:
        """The first start, and every other."""
        self.phase, self._deadline = Phase.RUNNING, None
        self._judgement = Judgement(self._policy.limits, self._policy.signs)
        self._fatal = self._ending = None
        self._asked_to_end = self._killed = False
        self._started = now
        self.counts.starts += 1
        return [Start()]

    def see(self, sighting: Sighting, now: float) -> list[Order]:
        """A line of the process's log says something."""
        sign = sign_of(sighting)
        if sign is not None:
            self.counts.sightings[sign] += 1
        if self._fatal is not None or self.stopping:
            return []
        return self._judged(self._judgement.see(sighting, now), now)

    def could_not_start(self, reason: str, now: float) -> list[Order]:
        """A restart failed, say because its program is being replaced."""
        self._fatal = Fatal(Sign.START_FAILED, "", reason)
        return self.exited(Ending(127), group_is_empty=True, now=now)

    def exited(self, ending: Ending, *, group_is_empty: bool, now: float) -> list[Order]:
        """The process has ended, and all that it wrote before was seen."""
        self._ending = ending
        if not self._asked_to_end:
            self._ended_since = now
        if group_is_empty:
            return self._gone(now)
        return self._end_group(now)

    def group_emptied(self, now: float) -> list[Order]:
        """The last process of the group has ended, after the process itself."""
        return self._gone(now) if self.phase is Phase.ENDING and self._ending is not None else []

    def signal(self, number: int) -> list[Order]:
        """The guard was sent a signal."""
        if self.phase is Phase.WAITING:
            if number not in _ENDS_WAITING:
                return []
            self.phase = Phase.DONE
            text = f"got {name_of(number)} while the process was not running, and ended"
            return [Say(text), Finish(Ending(signal=number))]
        if number in _ENDS_ALL:
            self.stopping = True
        return [Pass(number)]

    def tick(self, now: float) -> list[Order]:
        """Time has passed."""
        if self.phase is Phase.RUNNING:
            return [] if self.stopping else self._judged(self._judgement.tick(now), now)
        if self._deadline is None or now < self._deadline:
            return []
        if self.phase is Phase.WAITING:
            return self.begin(now)
        if not self._killed:
            self._killed = True
            self.counts.kills += 1
            self._deadline = now + _LAST_PATIENCE_S
            return [Pass(signal.SIGKILL)]
        self._ending = self._ending or Ending(signal=signal.SIGKILL)
        return self._gone(now)

    def _judged(self, fatal: Fatal | None, now: float) -> list[Order]:
        if fatal is None:
            return []
        self._fatal = fatal
        return self._end_group(now) if self.phase is Phase.RUNNING else []

    def _end_group(self, now: float) -> list[Order]:
        self.phase = Phase.ENDING
        if self._asked_to_end:
            return []
        self._asked_to_end = True
        self._ended_since = now
        self._deadline = now + self._policy.grace_s
        return [Pass(signal.SIGTERM)]

    def _gone(self, now: float) -> list[Order]:
        """The process and its group are gone: what next?"""
        ending = self._ending
        assert ending is not None
        self._deadline = None
        if self._fatal is None or self.stopping:
            self.phase = Phase.DONE
            return [Finish(ending)]
        wait_s = self._budget.spend(self._ended_since - self._started, now, self._chance())
        if wait_s is None:
            self.phase, self.counts.gave_up = Phase.DONE, True
            if ending == Ending(0):
                ending = Ending(FAILED)
            restarts = counted(self._policy.back_off.per_hour, "restart")
            text = f"{self._story(now)}; gave up after {restarts} within an hour"
            return [Say(text), Finish(ending)]
        self.phase = Phase.WAITING
        self._deadline = now + wait_s
        self.counts.restarts[self._fatal.sign] += 1
        number = len(self._budget.restarts)
        text = (
            f"{self._story(now)}; starts it again in {wait_s:.1f} s ({counted(number, 'restart')} within the "
            f"last hour, at most {self._policy.back_off.per_hour})"
        )
        return [Say(text)]

    def _story(self, now: float) -> str:
        """What was seen and done."""
        fatal = self._fatal
        assert fatal is not None
        detail = f" ({fatal.detail})" if fatal.detail else ""
        seen = f'saw {fatal.sign}{detail}: "{harmless(fatal.text[: 2 * LONGEST_TEXT])}"'
        if not self._asked_to_end:
            return f"{seen}; the process ended by itself, {self._ending}"
        kill = f" and, after {self._policy.grace_s:g} s, SIGKILL" if self._killed else ""
        took_s = now - self._ended_since
        return f"{seen}; sent SIGTERM{kill}; the process ended {self._ending}, after {took_s:.1f} s"


def name_of(number: int) -> str:
    """As kill -l writes it, with SIG before it."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
