"""How Prometheus reads metrics: the text format 0.0.4."""

import math
from collections.abc import Callable, Iterable, Mapping

from kelpie.model.time import Instant

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def family(name: str, kind: str, help_text: str, samples: Iterable[str]) -> str:
    """A metric with its samples. A sample may begin with a suffix of the name: _sum, _count."""
    return head(name, kind, help_text) + "".join(f"{name}{sample}\n" for sample in samples)


def head(name: str, kind: str, help_text: str) -> str:
    """What stands above the samples of a metric."""
    return f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n"


def escaped(text: str) -> str:
    """A label's value as the format wants it."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def sample(
    labels: Mapping[str, object],
    value: float,
    *,
    suffix: str = "",
    at: Instant | None = None,
    quote: Callable[[str], str] = escaped,
) -> str:
    """All of a line but the name of its family."""
    inside = ",".join(f'{label}="{quote(str(text))}"' for label, text in labels.items())
    time = "" if at is None else f" {at}"
    return f"{suffix}{{{inside}}} {_number(value)}{time}" if inside else f"{suffix} {_number(value)}{time}"


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else str(value)
