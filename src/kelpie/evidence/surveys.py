"""Snapshots that `kelpie collect` took, as evidence: those of one cluster, as the doctor looks at them."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kelpie.evidence.collected import Header, Torn, read_collected
from kelpie.evidence.looks import Choice, choose, look
from kelpie.evidence.unreadable import unreadable
from kelpie.observations import Observations, Unasked


class _Unusable(Exception):
    """A snapshot turned out to be torn; the others are looked at without it."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name, self.reason = name, reason


class Survey(NamedTuple):
    """A snapshot, and its first line."""

    path: Path
    header: Header


def read_surveys(surveys: Mapping[str, Survey], unasked: list[Unasked]) -> Observations:
    """What of all snapshots counts. Those that cannot be used are told in `unasked`."""
    headers = {name: survey.header for name, survey in surveys.items()}
    while True:
        choice = choose(headers)
        try:
            found = look(choice, lambda name, wanted: _read(name, surveys[name].path, wanted))
        except _Unusable as error:
            unasked.append(_told(error.name, error.reason))
            del headers[error.name]
            continue
        unasked += [_told(name, other_cluster(headers[name], choice)) for name in choice.foreign]
        return found


def other_cluster(header: Header, choice: Choice) -> str:
    return (
        f"It is a snapshot of cluster {header.cluster}; most are of {choice.cluster}, and one cluster is "
        "looked at at a time."
    )


def _read(name: str, path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    try:
        yield from read_collected(path, wanted)
    except Torn as error:
        raise _Unusable(name, str(error)) from None
    except OSError as error:
        raise _Unusable(name, unreadable(error)) from None


def _told(name: str, reason: str) -> Unasked:
    return Unasked("file", name, reason, source=name)
