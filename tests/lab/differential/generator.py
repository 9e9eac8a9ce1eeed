"""Random scripts. The same seed gives the same script."""

from collections.abc import Callable
from random import Random
from typing import Any

from tests.lab.differential.script import Actor, Script, Step
from tests.lab.differential.side import SHORT_MS

VERSIONS = {
    "join": (0, 9),
    "sync": (0, 5),
    "heartbeat": (0, 4),
    "leave": (0, 5),
    "commit": (2, 10),
    "fetch": (1, 10),
    "describe": (0, 6),
    "list": (0, 5),
    "delete": (0, 2),
    "offset_delete": (0, 0),
    "init": (0, 5),
    "add_offsets": (0, 4),
    "txn_commit": (0, 5),
    "end": (0, 5),
    "find": (0, 6),
}
"""What Kafka 4.3 speaks."""

_PROPER = ("range", "range", "range-both", "two", "two", "two-reversed", "three", "range-b")
_ODD = ("sticky", "cut", "nameless", "broken", "negative", "newer", "blank", "large", "none")
_STATES = ("Stable", "stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Dead", "Nonsense", "")


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.seed = seed

    def script(self) -> Script:
        random = self.random
        groups = random.choice((1, 1, 1, 2, 2, 3))
        actors: list[Actor] = []
        for group in range(groups):
            static = random.random() < 0.4
            for number in range(random.randint(1, 4)):
                instance = f"i{group}{number}" if static and random.random() < 0.7 else None
                if instance is not None and actors and random.random() < 0.15:
                    instance = actors[-1].instance if actors[-1].group == group else instance
                actors.append(Actor(group, instance))
        self.actors, self.groups = actors, groups
        # Old clients and new ones: a group of one age now and then.
        self.age = random.choice((None, None, None, "old", "new"))
        steps: list[Step] = []
        length = random.randint(10, 60)
        while len(steps) < length:
            steps += self._some()
        return Script(self.seed, tuple(actors), tuple(steps[:length]))

    def timed_script(self) -> Script:
        """A group whose members go silent: sessions, ids given out, joins and syncs time out."""
        random = self.random
        static = random.random() < 0.4
        count = random.randint(1, 4)
        self.groups, self.age = 1, None
        self.actors = [Actor(0, f"i{n}" if static and random.random() < 0.7 else None) for n in range(count)]
        sessions = [random.choice((SHORT_MS, SHORT_MS, 300_000)) for _ in range(count)]
        # With timeouts of 3 s: what was set before the first lapse fires at 0 s, what that sets at 3 s, and
        # what is set after it (from 1.2 s on) at 4.2 s. Each takes at most 0.5 s, and is over when it is.
        steps: list[Step] = []
        for hold in random.choice(((0.85,), (1.2, 0.85))):
            for _ in range(random.randint(2, 4 * count)):
                (step,) = self._advance()
                steps.append({**step, "session": sessions[step["a"]], "rebalance": SHORT_MS})
                if random.random() < 0.1:
                    steps += self._leave()
            steps.append({"op": "lapse", "g": 0, "hold": hold})
        return Script(self.seed, tuple(self.actors), tuple(steps))

    def _some(self) -> list[Step]:
        kinds: tuple[tuple[int, Callable[[], list[Step]]], ...] = (
            (10, self._advance),
            (8, self._settle),
            (7, self._member_step),
            (2, self._leave),
            (1, self._purge),
            (6, self._commit),
            (4, self._fetch),
            (2, self._ask_about_groups),
            (1, self._delete),
            (1, self._offset_delete),
            (2, self._transaction),
        )
        (kind,) = self.random.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])
        return kind()

    # Parts of steps.

    def _actor(self) -> int:
        return self.random.randrange(len(self.actors))

    def _version(self, op: str) -> int:
        low, high = VERSIONS[op]
        if self.age == "new" or self.random.random() < 0.3:
            return high
        if self.age == "old":
            high = min(high, low + 4)
        return self.random.randint(low, high)

    def _odd(self, chance: float, *values: Any) -> Any:
        """The first, or by this chance one of the others."""
        return self.random.choice(values[1:]) if self.random.random() < chance else values[0]

    def _who(self, step: Step, chance: float) -> Step:
        who = self._odd(chance, "own", "none", "bogus", "old", "peer")
        instance = self._odd(chance / 2, "own", "none", "bogus", "peer")
        if who != "own":
            step["who"] = who
        if instance != "own":
            step["inst"] = instance
        return step

    def _generation(self, step: Step, chance: float) -> Step:
        generation = self._odd(chance, "own", "next", "past", "none", "zero")
        if generation != "own":
            step["gen"] = generation
        return step

    def _elsewhere(self, step: Step, chance: float) -> Step:
        """Now and then a group that is not the actor's."""
        if self.random.random() < chance:
            step["g"] = self.random.choice(("empty", "absent", self.random.randrange(self.groups)))
        return step

    def _groups(self) -> list[int | str]:
        every = [*range(self.groups), "absent", "empty"]
        return self.random.sample(every, self.random.randint(1, min(3, len(every))))

    def _topics(self, partition: Callable[[int], Any]) -> list[Any]:
        topics = []
        for topic in self.random.sample(("a", "b", "nope"), self._odd(0.3, 1, 2, 3)):
            indexes = self.random.sample((0, 1, 2, 9, -1), self.random.randint(1, 2))
            known = [0] if topic == "b" else [0, 1, 2]
            if self.random.random() < 0.8:
                indexes = [index for index in indexes if index in known] or [0]
            topics.append([topic, [partition(index) for index in indexes]])
        if self.random.random() < 0.8:
            topics = [each for each in topics if each[0] != "nope"]
        return topics

    def _offset(self, index: int) -> list[Any]:
        metadata = self._odd(
            0.2, "", None, "here", "x*4096", "x*4097", "\N{DOG FACE}*2048", "\N{DOG FACE}*2049"
        )
        return [
            index,
            self._odd(0.1, self.random.randint(0, 99), -1, -2, 2**62),
            self._odd(0.3, -1, 0, 3),
            metadata,
        ]

    # Steps.

    def _advance(self, actor: int | None = None, chance: float = 0.2) -> list[Step]:
        step: Step = {
            "op": "advance",
            "a": self._actor() if actor is None else actor,
            "vs": [self._version(op) for op in ("join", "sync", "heartbeat")],
        }
        if step["vs"][0] < 7 and self.random.random() < 0.95:
            step["vs"][1] = min(step["vs"][1], 4)  # It was not told what version 5 wants to hear.
        protocols = self._odd(chance, "range", *_PROPER[2:])
        if protocols != "range":
            step["protocols"] = protocols
        if self.random.random() < 0.05:
            step["impatient"] = True
        return [step]

    def _settle(self) -> list[Step]:
        """Several rounds, so that the group has every chance to become Stable."""
        group = self.random.randrange(self.groups)
        members = [number for number, actor in enumerate(self.actors) if actor.group == group]
        steps = []
        for _ in range(self.random.randint(2, 4)):
            self.random.shuffle(members)
            for member in members:
                steps += self._advance(member, 0.05)
        return steps

    def _member_step(self) -> list[Step]:
        op = self.random.choice(("join", "join", "sync", "sync", "heartbeat"))
        step: Step = {"op": op, "a": self._actor(), "v": self._version(op)}
        self._elsewhere(self._who(step, 0.4), 0.05)
        if op == "join":
            step["protocols"] = self._odd(0.4, self.random.choice(_PROPER), *_ODD)
            kind = self._odd(0.15, "consumer", "connect", "")
            if kind != "consumer":
                step["type"] = kind
            session = self._odd(0.08, 0, 1, -5, 499, 1_800_000, 1_800_001)
            if session:
                step["session"] = session
            return [step]
        self._generation(step, 0.3)
        if op == "sync":
            step["assign"] = self._odd(0.3, "leader", "none", "odd")
            step["skip"] = self._odd(0.1, 0, 1)
            step["ptype"] = self._odd(0.2, "own", "none", "bad")
            step["pname"] = self._odd(0.2, "own", "none", "bad")
        return [step]

    def _leave(self) -> list[Step]:
        step: Step = {"op": "leave", "a": self._actor(), "v": self._version("leave")}
        leaving = [
            [
                actor,
                self._odd(0.25, "own", "none", "bogus", "old"),
                self._odd(0.3, "none", "own", "bogus", "peer"),
            ]
            for actor in [step["a"], *(self._actor() for _ in range(self._odd(0.3, 0, 1, 2)))]
        ]
        if self.random.random() < 0.03:
            step["v"], leaving = 3, []
        return [self._elsewhere({**step, "leaving": leaving}, 0.05)]

    def _purge(self) -> list[Step]:
        return [{"op": "purge", "g": self.random.randrange(self.groups), "v": self.random.randint(3, 5)}]

    def _commit(self) -> list[Step]:
        step: Step = {"op": "commit", "a": self._actor(), "v": self._version("commit")}
        if self.random.random() < 0.3:
            step |= {"who": "none", "inst": "none", "gen": "none"}
        else:
            self._generation(self._who(step, 0.2), 0.2)
        if 2 <= step["v"] <= 4:
            step["retention"] = self._odd(0.3, -1, 0, 100_000)
        step["topics"] = self._topics(self._offset) if self.random.random() > 0.03 else []
        if self.random.random() < 0.1:
            # Not the group without a name: all scripts share it, and offsets can be stored in it.
            step["g"] = self.random.choice(("absent", self.random.randrange(self.groups)))
        return [step]

    def _fetch(self) -> list[Step]:
        groups = self._groups() if self.random.random() < 0.4 else [self.random.randrange(self.groups)]
        topics = self._topics(lambda index: index) if self.random.random() < 0.5 else None
        step = {"op": "fetch", "v": self._version("fetch"), "groups": groups, "topics": topics}
        return [{**step, "stable": self.random.random() < 0.3}]

    def _ask_about_groups(self) -> list[Step]:
        op = self.random.choice(("describe", "describe", "list", "find"))
        step: Step = {"op": op, "v": self._version(op)}
        if op == "list":
            step["states"] = self.random.sample(_STATES, self._odd(0.5, 0, 1, 2))
            step["types"] = self._odd(0.2, [], ["classic"], ["Classic"], ["consumer"], ["nonsense"], [""])
            return [step]
        step["groups"] = self._groups()
        if op == "describe":
            step["operations"] = self.random.random() < 0.2
        else:
            step["type"] = self._odd(0.1, 0, 1, 7)
        return [step]

    def _delete(self) -> list[Step]:
        return [{"op": "delete", "v": self._version("delete"), "groups": self._groups()}]

    def _offset_delete(self) -> list[Step]:
        step: Step = {
            "op": "offset_delete",
            "v": 0,
            "a": self._actor(),
            "topics": self._topics(lambda index: index),
        }
        return [self._elsewhere(step, 0.1)]

    def _transaction(self) -> list[Step]:
        """A whole one, or a piece."""
        actor, producer = self._actor(), self.random.randrange(2)
        group = self.actors[actor].group
        commit: Step = {"op": "txn_commit", "a": actor, "p": producer, "v": self._version("txn_commit")}
        if self.random.random() < 0.5:
            commit |= {"who": "none", "inst": "none", "gen": "none"}
        else:
            self._generation(self._who(commit, 0.2), 0.2)
        commit["topics"] = self._topics(self._offset)
        written = [[topic, [part[0] for part in parts]] for topic, parts in commit["topics"]]
        asked = written if self.random.random() < 0.7 else None
        ending = {"op": "end", "p": producer, "g": group, "commit": self.random.random() < 0.6}
        whole: list[Step] = [
            {"op": "init", "p": producer, "g": group, "v": self._version("init")},
            {"op": "add_offsets", "p": producer, "g": group, "v": self._version("add_offsets")},
            self._elsewhere(commit, 0.05),
            {"op": "fetch", "v": self._version("fetch"), "groups": [group], "topics": asked, "stable": True},
            {**ending, "v": self._version("end")},
            {"op": "fetch", "v": self._version("fetch"), "groups": [group], "topics": None, "stable": True},
        ]
        return [step for step in whole if self.random.random() > 0.12]
