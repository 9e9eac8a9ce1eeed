"""A sequence of requests, in words that mean the same to both sides: "the generation after yours".

A step is a dictionary, so that it can be printed and read again:

    op      what to ask (requests.py); `advance` is what a proper member would do next
    g       the group, by number; "empty" has no name, "absent" is never there
    a       the actor: a client that has a place in one group
    v       the version of the API
    who     whose member id: own, none, bogus, old (the one it had before), peer (the next actor's)
    inst    whose instance id: own, none, bogus, peer
    gen     which generation: own, next, past, none (-1), zero

Whatever else a step has belongs to its op.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

Step = dict[str, Any]


@dataclass(frozen=True)
class Actor:
    group: int
    instance: str | None = None


@dataclass(frozen=True)
class Script:
    seed: int
    actors: tuple[Actor, ...]
    steps: tuple[Step, ...] = field(repr=False)

    def text(self) -> str:
        """What `read` reads: a line for the actors, then a line a step."""
        head = {"seed": self.seed, "actors": [asdict(actor) for actor in self.actors]}
        return "\n".join(json.dumps(line) for line in (head, *self.steps)) + "\n"

    def without(self, first: int, count: int) -> "Script":
        return replace(self, steps=self.steps[:first] + self.steps[first + count :])


def read(text: str) -> Script:
    head, *steps = (json.loads(line) for line in text.splitlines() if line.strip())
    actors = tuple(Actor(**actor) for actor in head["actors"])
    return Script(head["seed"], actors, tuple(steps))
