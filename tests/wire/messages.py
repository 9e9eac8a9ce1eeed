"""Random messages of any declared class and version, as Hypothesis strategies."""

from typing import Any

from hypothesis import strategies as st

from kelpie.wire.apis import api
from kelpie.wire.compiler.layout import ArrayOf, Blob, FieldAt, Kind, Layout, StructOf, Text, layout, part
from kelpie.wire.schema import Fixed


def _repeated(text: str, length: int) -> str:
    return (text * length)[:length]


# Lengths beyond 127 take two bytes. Few letters, often: drawing each of them takes Hypothesis its time.
_LONG_TEXT = st.builds(_repeated, st.text("aé€😀", min_size=1, max_size=3), st.integers(126, 140))
_TEXT = st.text(st.characters(codec="utf-8"), max_size=6) | _LONG_TEXT
_BLOB = st.binary(max_size=6) | st.binary(min_size=126, max_size=131)
_RANGES = {
    "b": (-(2**7), 2**7 - 1),
    "h": (-(2**15), 2**15 - 1),
    "i": (-(2**31), 2**31 - 1),
    "q": (-(2**63), 2**63 - 1),
    "H": (0, 2**16 - 1),
    "I": (0, 2**32 - 1),
}


def versions_of(key: int) -> range:
    """All versions of an API that Kelpie speaks."""
    known = api(key).versions
    assert known.last is not None
    return range(known.first, known.last + 1)


def messages(cls: type[Any], version: int, **narrow: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Messages of one version. `narrow` replaces the strategy of fields whose name ends in its key."""
    return _struct(layout(cls, version), narrow)


def _struct(at: Layout, narrow: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    return st.builds(at.cls, **{field.name: _field(field, at, narrow) for field in (*at.fields, *at.tagged)})


def _field(field: FieldAt, at: Layout, narrow: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    for ending, strategy in narrow.items():
        if field.name.endswith(ending) and isinstance(field.kind, Fixed):
            return strategy
    values = _value(field.kind, at, narrow)
    if field.tag is not None:
        return st.just(field.default) | values
    return st.none() | values if field.nullable else values


def _value(kind: Kind, at: Layout, narrow: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    match kind:
        case Fixed(code="?"):
            return st.booleans()
        case Fixed(code="d"):
            return st.floats(allow_nan=False)
        case Fixed(code="16s"):
            return st.binary(min_size=16, max_size=16)
        case Fixed():
            return st.integers(*_RANGES[kind.code])
        case Text():
            return _TEXT
        case Blob():
            return _BLOB
        case ArrayOf():
            return st.lists(_value(kind.element, at, narrow), max_size=3)
        case StructOf():
            return _struct(part(kind.cls, at.version, at.flexible), narrow)
