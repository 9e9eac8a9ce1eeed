"""Named scenarios, one file each: NAME, a docstring that says what happens, and `async def run(stage)`.

A scenario builds a cluster on its stage, does something to it, says what it sees, and states what it expects.
It has failed when something that it expected did not happen. At `stage.calm` and `stage.incident` somebody
may look at the cluster: stage.py says how.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kelpie.lab.scenarios.environment import Environment
from kelpie.lab.scenarios.stage import Moment, Observer, Stage

__all__ = ["Environment", "Moment", "Observer", "Scenario", "Stage", "scenarios"]


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    description: str
    run: Callable[[Stage], Awaitable[None]]
    personas: tuple[str, ...]
    """Those that it makes sense for; the first is what it runs with if nobody says otherwise."""

    @property
    def summary(self) -> str:
        return self.description.partition("\n")[0]


def scenarios() -> dict[str, Scenario]:
    """All scenarios, by name."""
    found: dict[str, Scenario] = {}
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        name = getattr(module, "NAME", None)
        if name is not None:
            description = inspect.getdoc(module) or ""
            found[name] = Scenario(name, description, module.run, tuple(module.PERSONAS))
    return dict(sorted(found.items()))
