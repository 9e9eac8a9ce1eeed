"""Moments of a situation as one compressed file under tests/evidence/, and back.

Lines of JSON. `["row", kind, data]` is a row of observations in Kelpie's own encoding; each is written once.
`["moment", now, [numbers]]` is an examination: its time, and the numbers of the rows that it judged, in
their order.
"""

import json
import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.observations.encoding import decode, encode, gathered, rows_of
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
    """The moments, judged anew by the rules of today."""
    rows: list[tuple[str, Any]] = []
    with lzma.open(path, "rt") as file:
        for line in file:
            word, *rest = json.loads(line)
            if word == "row":
                kind, data = rest
                rows.append((kind, decode(kind, data)))
            else:
                now, numbers = rest
                seen = gathered(rows[number] for number in numbers)
                yield Moment(now, seen, diagnose_all(*build(seen, now=now)).findings)
