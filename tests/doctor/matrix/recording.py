"""Moments of a situation as one compressed file under tests/evidence/, and back.

Lines of JSON. `["row", kind, data]` is a row of observations in Kelpie's own encoding; each is written once.
`["moment", now, [numbers]]` is an examination: its time, and the numbers of the rows that it judged, in
their order.
"""

import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.observations import Observations
from kelpie.observations.earlier import EARLIER_SURVEY
from kelpie.observations.encoding import decode, encode, gathered, rows_of
from kelpie.observations.presence import Presence
from tests.doctor.matrix.watching import Moment
from tests.doctor.matrix.world import VERSION

_FOLDER = Path(__file__).parents[2] / "evidence"


def file_of(situation: str) -> Path:
    return _FOLDER / f"matrix-{VERSION}-{situation}.jsonl.xz"


def write(path: Path, moments: Iterable[Moment]) -> None:
    numbers: dict[str, int] = {}
    with lzma.open(path, "wt", preset=9) as file:
        for moment in moments:
            judged = []
            for kind, row in rows_of(moment.rows):
                line = json.dumps(["row", kind, encode(row)], separators=(",", ":"))
                if line not in numbers:
                    numbers[line] = len(numbers)
                    file.write(line + "\n")
                judged.append(numbers[line])
            file.write(json.dumps(["moment", moment.now, judged], separators=(",", ":")) + "\n")


def replay(path: Path) -> Iterator[Moment]:
    """The moments, judged anew by the rules of today, with what the store of today keeps of brokers."""
    rows: list[tuple[str, Any]] = []
    presences: dict[int, Presence] = {}
    with lzma.open(path, "rt") as file:
        for line in file:
            word, *rest = json.loads(line)
            if word == "row":
                kind, data = rest
                rows.append((kind, decode(kind, data)))
            else:
                now, numbers = rest
                seen = gathered(rows[number] for number in numbers)
                _know_presences(seen, presences)
                cluster, cases = build(seen, now=now)
                for node, broker in cluster.brokers.items():
                    if broker.alive is not None:
                        presences[node] = presences.get(node, Presence()).seen(broker.alive, now)
                yield Moment(now, seen, diagnose_all(cluster, cases).findings)


def _know_presences(seen: Observations, presences: Mapping[int, Presence]) -> None:
    """In place of those that were recalled when the situation was recorded."""
    seen.brokers = [row for row in seen.brokers if row.source != EARLIER_SURVEY or row.alive is None]
    seen.brokers += [row for node, presence in presences.items() for row in presence.rows(node)]
