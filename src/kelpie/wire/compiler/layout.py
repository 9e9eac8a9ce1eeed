"""What one version of a message looks like: its declared fields, resolved for that version.

A layout is what the encoder, the decoder and the explainer all read; none of them reads annotations.
"""

import dataclasses
import types
import typing
from typing import Any

from kelpie.wire.schema import Fixed, Notes, declaration_of, notes_of


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """UTF-8 behind its length."""


@dataclasses.dataclass(frozen=True, slots=True)
class Blob:
    """Bytes behind their length."""


@dataclasses.dataclass(frozen=True, slots=True)
class ArrayOf:
    element: "Kind"


@dataclasses.dataclass(frozen=True, slots=True)
class StructOf:
    cls: type[Any]


Kind = Fixed | Text | Blob | ArrayOf | StructOf

_BOOL = Fixed("?", 1)


@dataclasses.dataclass(frozen=True, slots=True)
class FieldAt:
    """A field as it is in one version."""

    name: str
    kind: Kind
    nullable: bool
    tag: int | None
    default: Any
    presence_byte: bool = False
    """A tagged struct that Kafka declares nullable starts with a presence byte of its own."""


@dataclasses.dataclass(frozen=True, slots=True)
class AbsentField:
    """A field that this version does not have."""

    name: str
    default: Any
    strict: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    cls: type[Any]
    version: int
    flexible: bool
    fields: tuple[FieldAt, ...]
    tagged: tuple[FieldAt, ...]
    absent: tuple[AbsentField, ...]


def layout(cls: type[Any], version: int) -> Layout:
    """Resolves a whole message. Raises ValueError for a version that it does not have."""
    declared = declaration_of(cls)
    if version not in declared.versions:
        raise ValueError(f"{cls.__name__} has versions {declared.versions}, not {version}")
    return part(cls, version, declared.flexible is not None and version in declared.flexible)


_PARTS: dict[tuple[type[Any], int, bool], Layout] = {}


def part(cls: type[Any], version: int, flexible: bool) -> Layout:
    """Resolves a struct inside a message of this version."""
    known = _PARTS.get((cls, version, flexible))
    if known is None:
        known = _PARTS[cls, version, flexible] = _part(cls, version, flexible)
    return known


def _part(cls: type[Any], version: int, flexible: bool) -> Layout:
    hints = typing.get_type_hints(cls, include_extras=True)
    plain: list[FieldAt] = []
    tagged: list[FieldAt] = []
    absent: list[AbsentField] = []
    for declared in dataclasses.fields(cls):
        notes = notes_of(declared)
        default = _default(declared)
        if version not in notes.versions or (notes.tag is not None and not flexible):
            if default is dataclasses.MISSING:
                raise TypeError(
                    f"{cls.__name__}.{declared.name} is not in version {version} and has no default"
                )
            absent.append(AbsentField(declared.name, default, notes.strict))
            continue
        at = _resolve(declared.name, hints[declared.name], notes, version, default)
        (plain if at.tag is None else tagged).append(at)
    tagged.sort(key=lambda at: typing.cast(int, at.tag))
    return Layout(cls, version, flexible, tuple(plain), tuple(tagged), tuple(absent))


def _default(declared: "dataclasses.Field[Any]") -> Any:
    return [] if declared.default_factory is list else declared.default


def _resolve(name: str, hint: Any, notes: Notes, version: int, default: Any) -> FieldAt:
    kind, optional = _kind(hint)
    named_nullable = notes.nullable is not None and version in notes.nullable
    if notes.tag is not None and isinstance(kind, StructOf):
        return FieldAt(name, kind, False, notes.tag, default, presence_byte=named_nullable)
    nullable = named_nullable if notes.nullable is not None else optional
    return FieldAt(name, kind, nullable, notes.tag, default)


def _kind(hint: Any) -> tuple[Kind, bool]:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        inner = [argument for argument in typing.get_args(hint) if argument is not type(None)]
        return _kind(inner[0])[0], True
    if origin is typing.Annotated:
        fixed: Fixed = typing.get_args(hint)[1]
        return fixed, False
    if origin is list:
        return ArrayOf(_kind(typing.get_args(hint)[0])[0]), False
    if hint is bool:
        return _BOOL, False
    if hint is str:
        return Text(), False
    if hint is bytes:
        return Blob(), False
    if dataclasses.is_dataclass(hint):
        return StructOf(typing.cast(type[Any], hint)), False
    raise TypeError(f"{hint!r} is no wire type")


def least_size(kind: Kind, version: int, flexible: bool) -> int:
    """The fewest bytes a value of this kind takes: what bounds the count of an array before it is read."""
    match kind:
        case Fixed():
            return kind.size
        case Text():
            return 1 if flexible else 2
        case Blob() | ArrayOf():
            return 1 if flexible else 4
        case StructOf():
            inner = part(kind.cls, version, flexible)
            size = sum(
                1 if at.nullable and isinstance(at.kind, StructOf) else least_size(at.kind, version, flexible)
                for at in inner.fields
            )
            return max(1, size + flexible)
