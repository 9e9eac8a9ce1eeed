"""Moments of a situation as one compressed file under tests/evidence/, and back.

Lines of JSON. `["row", kind, data]` is a row of observations in Kelpie's own encoding; each is written once.
`["moment", now, [runs]]` is an examination: its time, and the numbers of the rows that it judged, in their
order, as runs.
"""

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kelpie.client.garbage import few_collections
from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.model.time import Instant
from kelpie.observations import Observations
from kelpie.observations.earlier import EARLIER_SURVEY
from kelpie.observations.encoding import decode, encode, gathered, rows_of
from kelpie.observations.presence import Presence
from tests.doctor.matrix.kinds import RELEASES
from tests.doctor.matrix.situations import SITUATIONS, Situation
from tests.doctor.matrix.watching import Moment

_BEFORE_MS = 2 * 60_000
_FOLDER = Path(__file__).parents[2] / "evidence"


def file_of(situation: str, release: str) -> Path:
    return _FOLDER / f"matrix-{release}-{situation}.jsonl.xz"


CELLS = [
    (release, situation)
    for release in RELEASES
    for situation in SITUATIONS.values()
    if release in situation.releases and file_of(situation.name, release).exists()
]
"""What is recorded: a release, and a situation on it."""


def cell_name(part: str | Situation) -> str:
    return part if isinstance(part, str) else part.name


def write(path: Path, moments: Sequence[Moment]) -> None:
    """Situations may share a cluster: of the time before this one, two minutes are enough for a rhythm."""
    numbers: dict[str, int] = {}
    since = moments[0].now - _BEFORE_MS
    with lzma.open(path, "wt", preset=9) as file:
        for moment in moments:
            judged = []
            for kind, row in rows_of(moment.rows):
                if kind == "commit" and row.at is not None and row.at < since:
                    continue
                line = json.dumps(["row", kind, encode(row)], separators=(",", ":"))
                if line not in numbers:
                    numbers[line] = len(numbers)
                    file.write(line + "\n")
                judged.append(numbers[line])
            file.write(json.dumps(["moment", moment.now, _runs(judged)], separators=(",", ":")) + "\n")


def _runs(numbers: Sequence[int]) -> list[int]:
    """Of each run of successive numbers: how far from the last one it begins, and how long it is."""
    runs: list[int] = []
    last = 0
    for number in numbers:
        if runs and number == last + 1:
            runs[-1] += 1
        else:
            runs += [number - last, 1]
        last = number
    return runs


def _numbers(runs: Sequence[int]) -> Iterator[int]:
    last = 0
    for distance, length in zip(runs[::2], runs[1::2], strict=True):
        yield from range(last + distance, last + distance + length)
        last += distance + length - 1


class Recorded(NamedTuple):
    """A moment, not yet judged."""

    now: Instant
    rows: Observations
    cluster: ClusterView
    cases: list[Case]


def replay(path: Path) -> Iterator[Moment]:
    """The moments, judged anew by the rules of today."""
    for now, rows, cluster, cases in recorded(path):
        yield Moment(now, rows, diagnose_all(cluster, cases).findings)


def recorded(path: Path) -> Iterator[Recorded]:
    """The moments, with what the store of today keeps of brokers."""
    rows: list[tuple[str, Any]] = []
    presences: dict[int, Presence] = {}
    with lzma.open(path, "rt") as file, few_collections():
        # All lines at once: that is three times as quick as one after the other.
        for word, *rest in json.loads(f"[{','.join(file)}]"):
            if word == "row":
                kind, data = rest
                rows.append((kind, decode(kind, data)))
            else:
                now, runs = rest
                seen = gathered(rows[number] for number in _numbers(runs))
                _know_presences(seen, presences)
                cluster, cases = build(seen, now=now)
                for node, broker in cluster.brokers.items():
                    if broker.alive is not None:
                        presences[node] = presences.get(node, Presence()).seen(broker.alive, now)
                yield Recorded(now, seen, cluster, cases)


def _know_presences(seen: Observations, presences: Mapping[int, Presence]) -> None:
    """In place of those that were recalled when the situation was recorded."""
    seen.brokers = [row for row in seen.brokers if row.source != EARLIER_SURVEY or row.alive is None]
    seen.brokers += [row for node, presence in presences.items() for row in presence.rows(node)]
