"""Kelpie herds Kafka consumer groups: finds those that do not consume, and why.

    import kelpie

    for finding in kelpie.examine("kafka-1:9092").diagnosis.findings:
        print(finding.code, finding.group, finding.summary)

The names are those of `kelpie.api`, imported when they are first used. `__init__.pyi` is for type checkers.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("kelpie.api"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *import_module("kelpie.api").__all__])
