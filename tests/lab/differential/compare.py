"""Plays a script on both sides and tells the first difference; makes a failing script short."""

import itertools
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tests.lab.differential.known import is_known
from tests.lab.differential.leaders import Leaders
from tests.lab.differential.script import Script
from tests.lab.differential.side import AT_MOST_S, Cluster, Seen, Side

_RUN = secrets.token_hex(3)
_runs = itertools.count()
_MOST_TRIES = 5


@dataclass(frozen=True)
class Difference:
    script: Script
    step: int
    where: str
    real: Any
    lab: Any
    history: tuple[Seen, ...]
    """What both sides saw before."""

    def text(self) -> str:
        lines = [f"seed {self.script.seed}, step {self.step}: {self.where}", f"  real: {self.real}"]
        lines += [f"  lab:  {self.lab}", "the steps until then, with what both sides saw:"]
        for seen in self.history:
            lines.append(f"  {seen.step}: {self.script.steps[seen.step]}")
            lines += [f"       {number} -> {answer}" for number, answer in seen.answers.items()]
            if seen.group is not None:
                lines.append(f"       group: {_short(seen.group)}")
        lines += [f"  {self.step}: {self.script.steps[self.step]}", "to play it again:", self.script.text()]
        return "\n".join(lines)


class Played(NamedTuple):
    """What one side showed."""

    seen: list[Seen]
    leaders: Leaders
    longest_s: float


class Player(Protocol):
    async def play(self, script: Script, prefix: str) -> Played:
        """`prefix`: how the names of all groups begin."""


class Live:
    """A cluster that is asked now."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def play(self, script: Script, prefix: str) -> Played:
        side = Side(self._cluster, script, prefix)
        seen = await side.play()
        return Played(seen, side.leaders, side.longest_s)


class Both:
    """Real Kafka and the lab, whose leaders `leaders` decides (leaders.py)."""

    def __init__(self, real: Player, lab: Player, leaders: Leaders) -> None:
        self._real, self._lab, self._leaders = real, lab, leaders
        self.kept: list[tuple[Script, str, Played]] = []
        """What real Kafka said, where the lab said the same (recording.py)."""
        self.played = 0
        self.too_slow = 0
        """Scripts with timers for which the machine was too slow, again and again."""

    async def difference(self, script: Script) -> Difference | None:
        """What differs in two plays: the end of a first rebalance, which a timer brings, may be late once."""
        if await self._difference(script) is None:
            return None
        return await self._difference(script)

    async def _difference(self, script: Script) -> Difference | None:
        for _ in range(_MOST_TRIES):
            found, slow = await self._play(script)
            if not slow:
                return found
        self.too_slow += 1
        return None

    async def _play(self, script: Script) -> tuple[Difference | None, bool]:
        prefix = f"d{_RUN}-{next(_runs)}-"
        real = await self._real.play(script, prefix)
        self._leaders.update(real.leaders)
        lab = await self._lab.play(script, prefix)
        for key in real.leaders:
            del self._leaders[key]
        timed = any("rebalance" in step for step in script.steps)
        slow = timed and max(real.longest_s, lab.longest_s) > AT_MOST_S
        found = first_difference(script, real.seen, lab.seen)
        if found is None and not slow:
            self.kept.append((script, prefix, real))
        return found, slow

    async def shortest(self, found: Difference, tries: int = 200) -> Difference:
        """Drops steps as long as a difference remains."""
        script = found.script
        found = Difference(Script(script.seed, script.actors, script.steps[: found.step + 1]), *_rest(found))
        size = max(len(found.script.steps) // 2, 1)
        while size and tries > 0:
            first = 0
            while first < len(found.script.steps) and tries > 0:
                tries -= 1
                shorter = await self.difference(found.script.without(first, size))
                if shorter is None:
                    first += size
                else:
                    steps = shorter.script.steps[: shorter.step + 1]
                    found = Difference(Script(script.seed, script.actors, steps), *_rest(shorter))
            size //= 2
        return found


def _rest(found: Difference) -> tuple[Any, ...]:
    return found.step, found.where, found.real, found.lab, found.history


def first_difference(script: Script, real: list[Seen], lab: list[Seen]) -> Difference | None:
    for number, (one, other) in enumerate(zip(real, lab, strict=True)):
        for where, here, there in _differences(script, one, other):
            return Difference(script, number, where, here, there, tuple(real[:number]))
    return None


def _differences(script: Script, real: Seen, lab: Seen) -> Iterator[tuple[str, Any, Any]]:
    for number in sorted({*real.answers, *lab.answers}):
        one, other = real.answers.get(number, "parked"), lab.answers.get(number, "parked")
        if one != other and not is_known(script.steps[number]["op"], one, other):
            yield f"answer to step {number}", *_narrowed(one, other)
    if real.group != lab.group and not is_known("state", real.group, lab.group):
        yield "the group", *_narrowed(real.group, lab.group)


def _narrowed(one: Any, other: Any) -> tuple[Any, Any]:
    """Only the fields that differ, where both are messages."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = [name for name in one if one[name] != other.get(name)]
        return {name: one[name] for name in names}, {name: other.get(name) for name in names}
    return one, other


def _short(group: dict[str, Any]) -> str:
    members = ", ".join(str(member["member_id"]) for member in group["members"])
    return f"{group['group_state']} {group['protocol_type']}/{group['protocol_data']} [{members}]"
