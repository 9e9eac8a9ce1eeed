"""Pieces of a translated text, and how they are put together."""

import re
from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

_HAN = re.compile("[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")
"""Characters, and the wide signs of punctuation."""
_WIDE = re.compile("[\u4e00-\u9fff]")
_NARROW = re.compile("[A-Za-z0-9_)$'\"]")


class Kind(Enum):
    SAID = auto()
    """In the other language."""
    NAME = auto()
    """A name, a number or a command: the same in every language."""
    ENGLISH = auto()
    """Not understood."""


class Piece(NamedTuple):
    text: str
    kind: Kind = Kind.SAID

    @property
    def is_english(self) -> bool:
        return self.kind is Kind.ENGLISH


def joined(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Neighbours of one kind are one piece. Between Chinese and other signs is a space, as everywhere on
    pages; between Chinese and Chinese is none.
    """
    row: list[Piece] = []
    for piece in pieces:
        text = piece.text
        if not text:
            continue
        if row and row[-1].text:
            before = row[-1]
            if before.kind is Kind.SAID and _HAN.match(text.lstrip()):
                before = Piece(_space_after_han(before.text), before.kind)
            if piece.kind is Kind.SAID and _HAN.search(before.text[-1]):
                text = text.lstrip(" ")
            needs_space = bool(text) and bool(
                (_WIDE.match(before.text[-1:]) and _NARROW.match(text[:1]))
                or (_NARROW.match(before.text[-1:]) and _WIDE.match(text[:1]))
            )
            row[-1] = before
            if needs_space:
                text = f" {text}"
            if before.kind is piece.kind:
                row[-1] = Piece(before.text + text, piece.kind)
                continue
        if text:
            row.append(Piece(text, piece.kind))
    return tuple(row)


def _space_after_han(text: str) -> str:
    bare = text.rstrip(" ")
    return bare if bare and _HAN.match(bare[-1]) else text


def has_han(text: str) -> bool:
    return _HAN.search(text) is not None
