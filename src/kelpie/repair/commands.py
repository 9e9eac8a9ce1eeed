"""Commands of a plan that also name a file of client properties."""

import shlex
from dataclasses import replace

from kelpie.repair.plan import ManualStep, Plan

_ADDRESS = ("-b", "--bootstrap-server")


def with_properties(plan: Plan, file: str) -> Plan:
    """The same plan; its commands read these client properties too."""

    def way(given: ManualStep) -> ManualStep:
        return replace(given, lines=tuple(_with_properties(line, file) for line in given.lines))

    return replace(
        plan,
        steps=tuple(replace(step, undo=way(step.undo)) for step in plan.steps),
        afterwards=tuple(map(way, plan.afterwards)),
        instead=tuple(map(way, plan.instead)),
    )


def _with_properties(line: str, file: str) -> str:
    if not line.startswith(("kelpie ", "kafka-")):
        return line
    words = shlex.split(line)
    for at, word in enumerate(words):
        if word in _ADDRESS:
            return shlex.join([*words[: at + 2], "--command-config", file, *words[at + 2 :]])
    return line
