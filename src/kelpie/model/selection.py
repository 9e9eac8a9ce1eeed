"""Which groups a person means: by name, by pattern, and without some of them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Selection:
    """Names and patterns of groups, as a shell has them: `billing-*`, `team-?`, `[ab]-*`.

    A word that is the name of a group means that group alone, whatever signs it has. A pattern that matches
    no group is kept like a name that nobody knows, so that the answer says so.
    """

    words: Sequence[str] | None = None
    """None: all groups."""
    excluded: Sequence[str] = ()
    """Names or patterns of groups to leave out. A group that is named in full is not left out."""

    @property
    def is_all(self) -> bool:
        return self.words is None and not self.excluded

    def chosen(self, known: Collection[str]) -> list[str]:
        """Of the groups that are known, those that are meant; and words that match none of them."""
        named = set(self.words or ())
        candidates = known if self.words is None else self._matching(known)
        return [
            group
            for group in candidates
            if group in named or not any(_matches(group, word) for word in self.excluded)
        ]

    def _matching(self, known: Collection[str]) -> Iterable[str]:
        chosen: dict[str, None] = {}
        for word in self.words or ():
            is_pattern = word not in known and not _WILD.isdisjoint(word)
            matching = [group for group in known if fnmatchcase(group, word)] if is_pattern else []
            chosen.update(dict.fromkeys(matching or [word]))
        return chosen


def _matches(group: str, word: str) -> bool:
    return group == word or fnmatchcase(group, word)


ALL_GROUPS = Selection()
