"""Named scenarios, one file each: NAME, a docstring that says what happens, and `async def run(stage)`.

A scenario builds a cluster on its stage, changes something, reports what it sees, and states what it expects.
It fails when something that it expects does not happen. At `stage.calm` and `stage.incident` an observer can
examine the cluster: see stage.py.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kelpie.lab.scenarios.stage import Environment, Moment, Observer, Stage

__all__ = ["Environment", "Moment", "Observer", "Scenario", "Stage", "scenarios"]


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    description: str
    run: Callable[[Stage], Awaitable[None]]
    personas: tuple[str, ...]
    """The releases that it can run with; the first one is the default."""
    needs_zookeeper: bool = False
    """It runs in real time, with sessions of a real ZooKeeper."""

    @property
    def summary(self) -> str:
        return self.description.partition("\n")[0]


def scenarios() -> dict[str, Scenario]:
    """All scenarios, by name."""
    by_name: dict[str, Scenario] = {}
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        name = getattr(module, "NAME", None)
        if name is not None:
            description = inspect.getdoc(module) or ""
            needs_zookeeper = getattr(module, "NEEDS_ZOOKEEPER", False)
            personas = tuple(module.PERSONAS)
            by_name[name] = Scenario(name, description, module.run, personas, needs_zookeeper)
    return dict(sorted(by_name.items()))
