"""What real Kafka 4.3.1 answered to random scripts, kept: the lab is compared with it again and again.

    make differential N=200 RECORD=1

plays the scripts of seeds 1 to 200 on both sides, and keeps what the real broker said if there is no
difference. A line of the file is one script: its digest, what was seen after each step, and who led where
Kafka takes anyone. Names that differ from run to run are not in it (names.py). A script that the file does
not have, because the generator has changed, is an error: record again.
"""

import hashlib
import json
import lzma
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.lab.differential.compare import Played
from tests.lab.differential.script import Script
from tests.lab.differential.side import Seen

FILE = Path(__file__).parent / "kafka-4.3.1-answers.jsonl.xz"


def digest(script: Script) -> str:
    return hashlib.sha256(script.text().encode()).hexdigest()[:16]


class Recording:
    """Stands for the real broker, for the scripts that it was asked before."""

    def __init__(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        self._answers = answers

    async def play(self, script: Script, prefix: str) -> Played:
        known = self._answers.get(digest(script))
        if known is None:
            raise LookupError(
                f"{FILE.name} lacks the script of seed {script.seed}: make differential RECORD=1"
            )
        seen = [
            Seen(step, {int(number): answer for number, answer in answers.items()}, group)
            for step, answers, group in known["seen"]
        ]
        leaders = {(prefix + group, number): leader for group, number, leader in known["leaders"]}
        return Played(seen, leaders, 0.0)


def answers() -> dict[str, dict[str, Any]]:
    """What is kept of each script, by its digest."""
    with lzma.open(FILE, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return {row["script"]: row for row in rows}


def write(played: Iterable[tuple[Script, str, Played]]) -> None:
    """`played`: scripts, the prefix that the names of their groups had, and what was seen."""
    rows = []
    for script, prefix, real in sorted(played, key=lambda each: each[0].seed):
        seen = [[each.step, each.answers, each.group] for each in real.seen]
        leaders = [
            [group.removeprefix(prefix), number, leader] for (group, number), leader in real.leaders.items()
        ]
        rows.append({"script": digest(script), "seed": script.seed, "seen": seen, "leaders": leaders})
    with lzma.open(FILE, "wt", preset=9) as lines:
        lines.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
