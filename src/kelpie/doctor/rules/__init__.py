"""One file per rule. `rules()` finds them all; codes are never reused."""

import importlib
import pkgutil
from functools import cache

from kelpie.doctor.rule import Rule


@cache
def rules() -> dict[str, Rule]:
    """All rules, by code."""
    by_code: dict[str, Rule] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        rule = getattr(module, "RULE", None)
        if rule is not None:
            assert rule.code not in by_code, f"{rule.code} is taken twice"
            by_code[rule.code] = rule
    return dict(sorted(by_code.items()))
