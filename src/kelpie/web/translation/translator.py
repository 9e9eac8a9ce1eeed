"""Says in another language what the doctor says in English, by the templates of a catalogue.

The rules make their sentences of f-strings, and of pieces: a sentence has values in its holes, some of
which are pieces with holes of their own. So a text is compared with the templates; what is in their holes
is translated in the same way. Names, numbers and commands stay as they are.

A text may have hostile names in it. What is made of them is shown and nothing else: a name that looks
like a template may be taken for one, no more. Work is bounded by `_MOST_SIGNS` for each text; what is not
understood by then, or at all, stays English and is marked as such (`Piece.is_english`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from kelpie.web.translation.notation import Choice, Hole, Match, Part, Template, parse
from kelpie.web.translation.pieces import Kind, Piece, has_han, joined

LONGEST = 2_000
_MOST_SIGNS = 50_000
"""How many signs are looked at for one text, counted again for each part of it."""
_MOST_CANDIDATES = 24
_MOST_PLACES = 6
_LONGEST_LIST = 200
_DEEPEST = 12
_ENOUGH_LETTERS = 6
"""A template with fewer fixed letters frames no text that is not understood: it would fit anything."""
_MANY_LETTERS = 20
"""A template that begins like the text, and fixes so many letters, is the one: no other is looked for."""
_MUTE = frozenset(
    [
        "is",
        "are",
        "has",
        "have",
        "had",
        "was",
        "were",
        "does",
        "do",
        "did",
        "it",
        "they",
        "them",
        "its",
        "their",
        "s",
        "a",
        "the",
        "holds",
        "hold",
    ]
)
"""Words that a translation may leave out, in a hole that it does not name."""
_NEXT_SENTENCE = re.compile(" [A-Z{]")
_LETTER = re.compile("[A-Za-z]")
_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z{])")
_HOLE = re.compile(r"\{(\d+)(#?)\}")
_QUOTED_LINE = re.compile(r"\[|%\d\||\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d")
_PLAIN_WORD = re.compile(r"(?:^|(?<=[\s(\"'“]))[A-Za-z][a-z]+(?:'s)?(?=$|[\s),.;:!?\"'”])")
_NAME_AND_NUMBER = re.compile(r"\S+ \d[\d,.]*")
_NUMBER_AT_END = re.compile(r"\d[\d,]*\.")
"""The last word of a sentence."""
_COMMAND = re.compile(r"(?:kelpie|kafka-[a-z-]+(?:\.sh)?) (?:.* )?--?[a-z].*")
_DURATION = re.compile(r"\d[\d.,e+]* (?:ms|s|min|h|d)(?: \d+ (?:min|h))?")


@dataclass(frozen=True, slots=True)
class _Said:
    """A translation, how many letters of English are left in it, how much of it is taken for names, and how
    many doubtful steps led to it.
    """

    pieces: tuple[Piece, ...]
    left: int = 0
    names: int = 0
    doubt: int = 0

    @classmethod
    def of(cls, pieces: Iterable[Piece], parts: Sequence["_Said"], doubt: int) -> "_Said":
        return cls(
            tuple(pieces),
            sum(part.left for part in parts),
            sum(part.names for part in parts),
            1 + doubt + sum(part.doubt for part in parts),
        )

    @property
    def merit(self) -> tuple[int, int, int]:
        """The least is the best."""
        return self.left, self.names, self.doubt


class _Tired(Exception):
    pass


class _Entry(NamedTuple):
    template: Template
    parts: tuple[Part, ...]
    """Of the translation."""
    named: frozenset[int]
    """The holes that the translation shows."""
    frames: bool
    """Whether it may stand around a text that is not understood: it says enough itself."""
    begins_alike: bool
    """Whether its texts begin with words of its own."""


@dataclass(frozen=True, slots=True)
class Joints:
    """How a language joins sentences and lists: the signs for ". ", "; ", ": ", ", " and the last " and "."""

    sentence: str = "。"
    semicolon: str = "；"
    colon: str = "："
    comma: str = "、"
    last: str = " 和 "
    either: str = " 或 "

    def leading(self, text: str) -> str | None:
        """The sign for one with which a text begins."""
        return {": ": self.colon, "; ": self.semicolon, ", ": self.comma}.get(text[:2])


class Translator:
    def __init__(self, messages: Mapping[str, str], joints: Joints | None = None) -> None:
        """`messages`: by template, the translation; both in the notation of `notation.py`."""
        self._joints = joints or Joints()
        self._exact: dict[str, str] = {}
        self._by_word: dict[str, list[_Entry]] = {}
        self._anywhere: list[_Entry] = []
        self._continuing: list[_Entry] = []
        for message, translation in messages.items():
            self._add(message, translation)
            if _NEXT_SENTENCE.match(message):
                self._add(message.lstrip(), translation)
            if message.endswith(" "):  # Something is added to it.
                number = len(Template.of(message).fixed) - 1
                self._add(message.rstrip(), translation)
                self._add(f"{message}{{{number}}}", f"{translation}{{{number}}}")
            for sentence, translated in _sentences(message, translation):
                self._add(sentence, translated)
        self.pieces = lru_cache(maxsize=5_000)(self._pieces)
        """Of a text. Looks repeat their sentences, so those of the last looks are kept."""

    def _add(self, message: str, translation: str) -> None:
        template, parts = Template.of(message), parse(translation)
        named = frozenset(part.number for part in parts if isinstance(part, Hole))
        frames = template.weight >= _ENOUGH_LETTERS and has_han(translation)
        begins_alike = _LETTER.search(template.beginnings[-1]) is not None
        entry = _Entry(template, parts, named, frames, begins_alike)
        if len(template.fixed) == 1:
            for wording in template.fixed[0]:
                filled = _filled(parts, Match((), dict(wording.chosen)), ())
                self._exact[wording.text] = "".join(piece.text for piece in filled)
        if not template.beginnings[-1][:1].isalnum() and template.beginnings[-1]:
            self._continuing.append(entry)
        if len(template.fixed) == 1:
            return
        words = {beginning.partition(" ") for beginning in template.beginnings}
        if all(space for _, space, _ in words):
            for word in {word for word, _, _ in words}:
                self._by_word.setdefault(word, []).append(entry)
        else:
            self._anywhere.append(entry)

    def _pieces(self, text: str) -> tuple[Piece, ...]:
        if len(text) > LONGEST or _QUOTED_LINE.match(text):
            return (Piece(text, Kind.ENGLISH),)
        try:
            return joined(_Work(self).said(text, 0).pieces)
        except _Tired:
            return (Piece(text, Kind.ENGLISH),)

    def exact(self, text: str) -> str | None:
        return self._exact.get(text)

    def candidates(self, text: str) -> list[tuple[_Entry, Match]]:
        """The templates that a text may be of, the most specific first."""
        found = []
        for entries in (self._by_word.get(text.partition(" ")[0], ()), self._anywhere):
            for entry in entries:
                if entry.template.anchor in text:
                    found += [(entry, match) for match in entry.template.matches(text)]
        found.sort(key=lambda each: -each[0].template.weight)
        return found[:_MOST_CANDIDATES]

    def continuations(self, text: str) -> Iterator[tuple[int, _Entry, Match]]:
        """Where pieces begin that were added to others, as ", because …", up to the end of the text."""
        for entry in self._continuing:
            template = entry.template
            if template.anchor not in text:
                continue
            places = {find(each, 1) for each in template.beginnings for find in (text.find, text.rfind)}
            for at in sorted(place for place in places if place > 0):
                for match in template.matches(text[at:]):
                    yield at, entry, match

    @property
    def joints(self) -> Joints:
        return self._joints


class _Work:
    """On one text: what is known of its parts, and how much may still be looked at."""

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self._known: dict[str, _Said] = {}
        self._signs = _MOST_SIGNS

    def said(self, text: str, depth: int) -> _Said:
        known = self._known.get(text)
        if known is not None:
            return known
        if depth > _DEEPEST:
            return _english(text)
        self._signs -= len(text)
        if self._signs < 0:
            raise _Tired
        self._known[text] = _english(text)  # While it is worked on, it is no part of itself.
        said = self._known[text] = self._new(text, depth)
        return said

    def _new(self, text: str, depth: int) -> _Said:
        exact = self._translator.exact(text) if text else ""
        if exact is not None:
            return _Said((Piece(exact),))
        joint = self._translator.joints.leading(text)
        if joint is not None and _is_name(text[2:]):
            return _Said((Piece(joint), Piece(text[2:], Kind.NAME)), names=sum(map(str.isalnum, text)))
        if (" " not in text and not _NUMBER_AT_END.fullmatch(text)) or _is_name(text):
            return _Said((Piece(text.strip(" "), Kind.NAME),), names=sum(map(str.isalnum, text)))
        best = _english(text)
        for said, is_sure in self._attempts(text, depth + 1):
            best = min(best, said, key=lambda each: each.merit)
            if is_sure and not said.left:
                break
        return best

    def _attempts(self, text: str, depth: int) -> Iterator[tuple[_Said, bool]]:
        """Ways to understand a text, and whether no other need be looked for."""
        for entry, match in self._translator.candidates(text):
            said = self._by_template(entry, match, depth)
            if said is not None:
                is_sure = entry.begins_alike and entry.template.weight >= _MANY_LETTERS
                yield said, is_sure and not _has_sentences(match)
        for said in chain(
            self._continued(text, depth),
            self._lists(text, depth),
            self._ended(text, depth),
            self._sentences(text, depth),
        ):
            yield said, False

    def _continued(self, text: str, depth: int) -> Iterator[_Said]:
        for at, entry, match in self._translator.continuations(text):
            tail = self._by_template(entry, match, depth)
            head = self.said(text[:at], depth) if tail is not None else None
            if tail is not None and head is not None and (not head.left or entry.frames):
                doubt = 2 if text[at] == " " else 0
                yield _Said.of((*head.pieces, *tail.pieces), (head, tail), doubt)

    def _ended(self, text: str, depth: int) -> Iterator[_Said]:
        """With a full stop, or with something in brackets; or a name and a number."""
        if _NAME_AND_NUMBER.fullmatch(text):
            yield _Said((Piece(text, Kind.NAME),), names=sum(map(str.isalnum, text)), doubt=3)
        if text.endswith("."):
            yield from self._row([text[:-1]], [self._translator.joints.sentence], depth)
        else:
            yield from self._unfinished(text, depth)
        if text.startswith(" "):
            yield from self._row([text.lstrip(" ")], [""], depth)
        joint = self._translator.joints.leading(text)
        if joint is not None:
            yield from self._row(["", text[2:]], [joint, ""], depth)
        if text.endswith(")"):
            before, _, inside = text[:-1].partition(" (")
            yield from self._row([before, inside], ["（", "）"], depth, 0 if _is_name(before) else 3)

    def _unfinished(self, text: str, depth: int) -> Iterator[_Said]:
        """A sentence whose full stop was taken off, to go on behind it."""
        exact = self._translator.exact(f"{text}.")
        if exact is not None:
            yield _Said((Piece(exact.rstrip("。")),))
        for entry, match in self._translator.candidates(f"{text}."):
            said = self._by_template(entry, match, depth) if entry.template.text.endswith(".") else None
            if said is not None and said.pieces[-1].text.endswith("。"):
                last = Piece(said.pieces[-1].text[:-1])
                yield _Said((*said.pieces[:-1], last), said.left, said.names, said.doubt)

    def _by_template(self, entry: _Entry, match: Match, depth: int) -> _Said | None:
        holes: list[_Said] = []
        for number, hole in enumerate(match.holes):
            if number not in entry.named:
                if hole.strip() and hole.strip() not in _MUTE:
                    return None
                holes.append(_Said(()))
                continue
            said = self.said(hole, depth)
            if said.left and not entry.frames:
                return None
            holes.append(said)
        pieces = _filled(entry.parts, match, [said.pieces for said in holes])
        return _Said.of(pieces, holes, _doubt(entry, match))

    def _lists(self, text: str, depth: int) -> Iterator[_Said]:
        """As `model.words.listed` writes them; each element is understood, or it is no list."""
        joints = self._translator.joints
        for word, sign in ((" and ", joints.last), (" or ", joints.either)):
            at = text.rfind(word)
            if at > 0:
                first, last = text[:at], text[at + len(word) :]
                signs = [*[joints.comma] * first.count(", "), sign, ""]
                yield from self._row([*first.split(", "), last], signs, depth)
        for separator, sign in ((", ", joints.comma), ("; ", joints.semicolon)):
            if separator in text:
                parts = text.split(separator)
                yield from self._row(parts, [*[sign] * (len(parts) - 1), ""], depth)
        for separator, sign in ((": ", joints.colon), (" = ", " = "), (" → ", " → ")):
            if separator in text:
                yield from self._row(list(text.partition(separator)[::2]), [sign, ""], depth)

    def _row(self, parts: list[str], signs: list[str], depth: int, doubt: int = 0) -> Iterator[_Said]:
        if len(parts) > _LONGEST_LIST or not all(parts[1:]):
            return
        pieces: list[Piece] = []
        row: list[_Said] = []
        for part, sign in zip(parts, signs, strict=True):
            row.append(self.said(part, depth))
            if row[-1].left:
                return
            pieces += [*row[-1].pieces, Piece(sign)]
        yield _Said.of(pieces, row, doubt)

    def _sentences(self, text: str, depth: int) -> Iterator[_Said]:
        """One after the other. One of them may stay English."""
        at = 0
        for _ in range(_MOST_PLACES):
            at = text.find(". ", at + 1)
            if at < 0:
                return
            first, rest = self.said(text[: at + 1], depth), self.said(text[at + 2 :], depth)
            space = (Piece(" "),) if first.left else ()
            yield _Said.of((*first.pieces, *space, *rest.pieces), (first, rest), 1)


def _doubt(entry: _Entry, match: Match) -> int:
    """How unlikely it is that the template means the text: it fixes few letters, it begins with a hole, or
    the end of a sentence is in a hole, unless that is the last, to which others were added.
    """
    is_weak = entry.template.weight < _ENOUGH_LETTERS
    doubt = (2 if is_weak else 0) + (0 if entry.begins_alike else 2 if is_weak else 1)
    last = match.holes[-1] if match.holes else ""
    if _has_sentences(match):
        doubt += 1 if last.startswith(" ") else 4
    elif last.endswith(".") and not last.startswith(" "):
        doubt += 2
    return doubt


def _has_sentences(match: Match) -> bool:
    return any(". " in hole.strip() for hole in match.holes)


def _is_name(text: str) -> bool:
    """Or a command, or a value in JSON."""
    if _DURATION.fullmatch(text) or text.endswith("."):
        return False
    if _COMMAND.fullmatch(text) or (text[:1] + text[-1:]) in ("{}", "[]"):
        return True
    return not _PLAIN_WORD.search(text)


def _english(text: str) -> _Said:
    return _Said((Piece(text, Kind.ENGLISH),), max(1, sum(map(str.isalpha, text))))


def _sentences(message: str, translation: str) -> Iterator[tuple[str, str]]:
    """The sentences of a message, if the translation has the same: a verdict says the first one alone."""
    english = _SENTENCE.split(message)
    other = [f"{each}。" for each in translation.rstrip("。").split("。")]
    if len(english) < 2 or len(english) != len(other) or not translation.endswith("。"):
        return
    for one, same in zip(english, other, strict=True):
        numbers = {each: str(number) for number, each in enumerate(hole for hole, _ in _HOLE.findall(one))}
        letters = {part.letter for part in parse(one) if isinstance(part, Choice)}
        used = {part.letter for part in parse(same) if isinstance(part, Choice)}
        if (
            any(isinstance(part, str) and _LETTER.search(part) for part in parse(one))
            and numbers.keys() >= {hole for hole, _ in _HOLE.findall(same)}
            and letters >= used
        ):
            yield _renumbered(one, numbers), _renumbered(same, numbers)


def _renumbered(text: str, numbers: Mapping[str, str]) -> str:
    return _HOLE.sub(lambda hole: f"{{{numbers[hole[1]]}{hole[2]}}}", text)


def _filled(parts: Iterable[Part], match: Match, holes: Iterable[tuple[Piece, ...]]) -> list[Piece]:
    by_number = list(holes)
    pieces: list[Piece] = []
    for part in parts:
        if isinstance(part, Hole):
            pieces += by_number[part.number]
        elif isinstance(part, Choice):
            pieces.append(Piece(part.options[match.chosen[part.letter]]))
        else:
            pieces.append(Piece(part))
    return pieces
