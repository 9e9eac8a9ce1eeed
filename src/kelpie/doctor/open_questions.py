"""What rules could not decide: for want of what, and of which groups.

Of 10,000 healthy groups each has some questions, and all have the same ones. So they are noted by what is
missing, with the names of the groups; thousands of groups with the same signs are noted together.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Open(NamedTuple):
    """A rule that could not decide about a group (None: the cluster), and what is missing."""

    code: str
    name: str
    group: str | None
    missing: tuple[str, ...]


class Lack(NamedTuple):
    """A rule that could not decide, and what is missing. They are sorted so."""

    code: str
    missing: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """What a rule could not decide, for all groups for which it lacks the same."""

    code: str
    name: str
    missing: tuple[str, ...]
    groups: tuple[str, ...]
    """By name. Empty: it concerns the cluster."""

    @property
    def whom(self) -> Sequence[str | None]:
        """Its groups; None: the cluster."""
        return self.groups or (None,)


class OpenQuestions:
    """Gathers them."""

    def __init__(self) -> None:
        self._groups: defaultdict[Lack, list[str]] = defaultdict(list)
        self._alike: dict[int, tuple[tuple[Lack, ...], list[str]]] = {}

    @classmethod
    def of(cls, rows: Iterable[Open]) -> "OpenQuestions":
        questions = cls()
        for code, name, group, missing in rows:
            questions.add(Lack(code, missing, name), group)
        return questions

    def add(self, lack: Lack, group: str | None) -> None:
        of_lack = self._groups[lack]
        if group is not None:
            of_lack.append(group)

    def add_alike(self, lacks: tuple[Lack, ...], group: str) -> None:
        """For groups that lack the same: callers give the same object."""
        if lacks:
            self._alike.setdefault(id(lacks), (lacks, []))[1].append(group)

    def rows(self) -> list[Open]:
        """One for each group, or for the cluster."""
        rows: list[Open] = []
        for lack, groups in self._groups.items():
            rows += [Open(lack.code, lack.name, group, lack.missing) for group in groups or (None,)]
        for lacks, groups in self._alike.values():
            rows += [Open(each.code, each.name, group, each.missing) for group in groups for each in lacks]
        return rows

    def by_lack(self) -> tuple[OpenQuestion, ...]:
        groups = {lack: list(of_lack) for lack, of_lack in self._groups.items()}
        for lacks, alike in self._alike.values():
            for lack in lacks:
                groups.setdefault(lack, []).extend(alike)
        return tuple(
            OpenQuestion(lack.code, lack.name, lack.missing, tuple(sorted(groups[lack])))
            for lack in sorted(groups)
        )
