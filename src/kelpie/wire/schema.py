"""The notation in which Kafka's messages are declared.

A message is a class; its annotations are the wire types, in wire order:

    @request(key=10, versions="0-6", flexible="3+")
    class FindCoordinatorRequest:
        key: str = field("0-3", default="")
        key_type: Int8 = field("1+", default=0, strict=True)
        coordinator_keys: list[str] = field("4+", default=[])

- `str`, `bytes`, `bool`, `list[T]` and the names below (`Int32`, …) are the types; `T | None` may be null.
- A field without a default is in every version: the caller that builds a message must name it.
- `field("4+", …)` says in which versions the field is on the wire. Elsewhere it keeps its default, so one
  class serves every version.
- `nullable="1+"` narrows the versions in which null is legal.
- `tag=0` makes it a tagged field (KIP-482): sent only when it differs from its default. A tagged struct is
  `None` when it is not sent; with `nullable=` given, Kafka also puts a presence byte before it.
- `strict=True`: in a version without the field, a value other than the default raises instead of being lost.
- `@struct` declares the parts of a message; versions in it are those of the message.

The compiler (`kelpie.wire.compiler`) turns a declaration into one encode and one decode function per version.
"""

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Fixed:
    """A value of fixed width; `code` is the `struct` module's letter for it."""

    code: str
    size: int


Int8 = Annotated[int, Fixed("b", 1)]
Int16 = Annotated[int, Fixed("h", 2)]
Int32 = Annotated[int, Fixed("i", 4)]
Int64 = Annotated[int, Fixed("q", 8)]
UInt16 = Annotated[int, Fixed("H", 2)]
Float64 = Annotated[float, Fixed("d", 8)]
Uuid = Annotated[bytes, Fixed("16s", 16)]

NO_UUID = bytes(16)
"""What Kafka sends where there is no topic id."""


@dataclasses.dataclass(frozen=True, slots=True)
class Versions:
    """A closed range of versions; `last` is None where it has no end."""

    first: int
    last: int | None

    def __contains__(self, version: int) -> bool:
        return version >= self.first and (self.last is None or version <= self.last)

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    @classmethod
    def parse(cls, text: str) -> "Versions":
        """Reads `3`, `0-3` or `3+`."""
        if text.endswith("+"):
            return cls(int(text[:-1]), None)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))


ALWAYS = Versions(0, None)


@dataclasses.dataclass(frozen=True, slots=True)
class Notes:
    """What `field(...)` says about a field beyond its type and default."""

    versions: Versions = ALWAYS
    nullable: Versions | None = None
    tag: int | None = None
    strict: bool = False


PLAIN = Notes()
_NOTES = "kelpie.wire"


def field(
    versions: str = "0+",
    *,
    default: Any = dataclasses.MISSING,
    nullable: str | None = None,
    tag: int | None = None,
    strict: bool = False,
) -> Any:
    """Declares what a type alone does not say: see the top of this file."""
    notes = Notes(Versions.parse(versions), Versions.parse(nullable) if nullable else None, tag, strict)
    if default == []:
        return dataclasses.field(default_factory=list, metadata={_NOTES: notes})
    return dataclasses.field(default=default, metadata={_NOTES: notes})


def notes_of(declared: "dataclasses.Field[Any]") -> Notes:
    notes: Notes = declared.metadata.get(_NOTES, PLAIN)
    return notes


@dataclasses.dataclass(frozen=True, slots=True)
class Declaration:
    """What the decorator of a whole message says; requests and responses have an API key."""

    versions: Versions
    flexible: Versions | None
    api_key: int | None = None


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def struct(cls: type[T]) -> type[T]:
    """Declares a part of a message."""
    return dataclasses.dataclass(slots=True, kw_only=True)(cls)


def _declare(declaration: Declaration) -> Callable[[type[T]], type[T]]:
    def wrap(cls: type[T]) -> type[T]:
        made = struct(cls)
        made.__declaration__ = declaration  # type: ignore[attr-defined]
        return made

    return wrap


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def request(*, key: int, versions: str, flexible: str | None = None) -> Callable[[type[T]], type[T]]:
    """Declares the request of an API."""
    return _declare(
        Declaration(Versions.parse(versions), Versions.parse(flexible) if flexible else None, key)
    )


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def response(*, key: int, versions: str, flexible: str | None = None) -> Callable[[type[T]], type[T]]:
    """Declares the response of an API; its versions are those of the request."""
    return request(key=key, versions=versions, flexible=flexible)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def data(*, versions: str, flexible: str | None = None) -> Callable[[type[T]], type[T]]:
    """Declares a structure that is stored in records or carried inside other messages."""
    return _declare(Declaration(Versions.parse(versions), Versions.parse(flexible) if flexible else None))


def declaration_of(cls: type[Any]) -> Declaration:
    declaration: Declaration = cls.__declaration__
    return declaration
