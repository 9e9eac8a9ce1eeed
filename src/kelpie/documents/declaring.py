"""How documents are declared: as typed dictionaries, with a text below each field.

mypy holds the functions that make a document to its declaration, and the published schema is made of it
(`schemas.py`).
"""

import sys
from typing import Any, TypeVar

if sys.version_info >= (3, 12):
    from typing import TypedDict
else:
    from typing_extensions import TypedDict  # pydantic, which makes the schemas, takes no other here.

__all__ = ["TypedDict", "document"]

T = TypeVar("T")


def document(declared: type[T]) -> type[T]:
    """Has its schema contain the texts below the fields, and allow no fields besides."""
    settings: dict[str, Any] = {"use_attribute_docstrings": True, "extra": "forbid"}
    declared.__pydantic_config__ = settings  # type: ignore[attr-defined]  # pydantic looks for it.
    return declared
