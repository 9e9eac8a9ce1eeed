"""Random messages of any declared class and version.

Hypothesis draws a seed and the message comes from that: drawing every field of a message took it thirty times
as long, and what fails is small enough to be read as it is.
"""

from collections.abc import Sequence
from itertools import cycle, islice
from random import Random
from typing import Any

from hypothesis import strategies as st

from kelpie.wire.apis import api
from kelpie.wire.compiler.layout import ArrayOf, Blob, FieldAt, Kind, Layout, StructOf, Text, layout, part
from kelpie.wire.schema import Fixed

_RANGES = {
    "b": (-(2**7), 2**7 - 1),
    "h": (-(2**15), 2**15 - 1),
    "i": (-(2**31), 2**31 - 1),
    "q": (-(2**63), 2**63 - 1),
    "H": (0, 2**16 - 1),
    "I": (0, 2**32 - 1),
}
_FLOATS = (0.0, -0.0, 1.5, -1e300, 5e-324, float("inf"), float("-inf"))
_LETTERS = "\0\n a9Zé€\ud7ff\ue000\uffff😀\U0010ffff"
_LENGTHS = (0, 0, 1, 2, 6, 126, 127, 128, 140)
"""Of texts and bytes, often of none; those beyond 127 take two bytes."""


def versions_of(key: int) -> range:
    """All versions of an API that Kelpie speaks."""
    known = api(key).versions
    assert known.last is not None
    return range(known.first, known.last + 1)


def messages(cls: type[Any], version: int) -> st.SearchStrategy[Any]:
    """Messages of one version."""
    at = layout(cls, version)
    return st.integers(0, 2**32 - 1).map(lambda seed: _struct(at, Random(seed)))


def several_messages(
    cls: type[Any], versions: Sequence[int], count: int
) -> st.SearchStrategy[list[tuple[int, Any]]]:
    """So many messages as one example, with their versions: one version after the other, from any one on.

    Hypothesis takes more time for an example than most tests take for a message.
    """
    layouts = [layout(cls, version) for version in versions]

    def of(seed: int) -> list[tuple[int, Any]]:
        random = Random(seed)
        first = random.randrange(len(layouts))
        chosen = islice(cycle(layouts), first, first + count)
        return [(at.version, _struct(at, random)) for at in chosen]

    return st.integers(0, 2**32 - 1).map(of)


def _struct(at: Layout, random: Random) -> Any:
    return at.cls(**{field.name: _field(field, at, random) for field in (*at.fields, *at.tagged)})


def _field(field: FieldAt, at: Layout, random: Random) -> Any:
    if field.tag is not None and random.random() < 0.5:
        return field.default
    if field.nullable and random.random() < 0.3:
        return None
    return _value(field.kind, at, random)


def _value(kind: Kind, at: Layout, random: Random) -> Any:
    match kind:
        case Fixed(code="?"):
            return random.random() < 0.5
        case Fixed(code="d"):
            return random.choice((*_FLOATS, random.uniform(-1e6, 1e6)))
        case Fixed(code="16s"):
            return random.choice((bytes(16), random.randbytes(16)))
        case Fixed():
            return _integer(*_RANGES[kind.code], random)
        case Text():
            return "".join(random.choices(_LETTERS, k=random.choice(_LENGTHS)))
        case Blob():
            return random.randbytes(random.choice(_LENGTHS))
        case ArrayOf():
            return [_value(kind.element, at, random) for _ in range(random.choice((0, 1, 1, 2, 3)))]
        case StructOf():
            return _struct(part(kind.cls, at.version, at.flexible), random)


def _integer(low: int, high: int, random: Random) -> int:
    """Ends of the range and small numbers are as likely as any others."""
    small = random.randint(max(low, -2), 200)
    return random.choice((low, high, min(small, high), random.randint(low, high)))
