"""Random sequences of group requests mean the same to the lab and to real Kafka 4.

`make differential N=5000 SEED=1` plays more of them. A difference is a bug of the lab, or has its reason in
known.py. What fails prints a script; `python -m tests.lab.differential --script FILE` plays it again.
"""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from kelpie.real.cluster import RealCluster
from tests.lab.differential.compare import Difference
from tests.lab.differential.generator import Generator
from tests.lab.differential.running import both, differences
from tests.lab.differential.script import Actor, Script
from tests.lab.differential.side import REAL_CONFIG

SEED = 1
SEQUENCES = 200
TIMED_SEQUENCES = 12

pytestmark = pytest.mark.real


@pytest.fixture
def play(real_kafka: Callable[..., RealCluster]) -> Callable[[Sequence[Script]], None]:
    """Plays scripts on both sides. The shortest way to the first difference is the failure."""
    address = real_kafka("4.3.1", 1, **REAL_CONFIG).bootstrap_servers

    async def run(scripts: Sequence[Script]) -> tuple[Difference | None, int]:
        async with both(address) as sides:
            found = await differences(sides, scripts, most=1)
            return (await sides.shortest(found[0]) if found else None), sides.too_slow

    def play(scripts: Sequence[Script]) -> None:
        found, too_slow = asyncio.run(run(scripts))
        if found is not None:
            pytest.fail(found.text(), pytrace=False)
        if too_slow == len(scripts):
            pytest.skip("This machine is too busy to compare timers.")

    return play


def test_random_sequences_have_the_same_answers(play: Callable[[Sequence[Script]], None]) -> None:
    """Every error code, generation, state, member and offset, after every step."""
    play([Generator(SEED + number).script() for number in range(SEQUENCES)])


def test_members_that_go_silent_are_treated_the_same(play: Callable[[Sequence[Script]], None]) -> None:
    """Sessions, ids given out, and the waits for joins and syncs end alike."""
    play([Generator(SEED + number).timed_script() for number in range(TIMED_SEQUENCES)])


def test_the_group_without_a_name_keeps_offsets(play: Callable[[Sequence[Script]], None]) -> None:
    """For the sake of old clients it may commit and fetch, be described and deleted; nobody can join it."""
    nobody = {"who": "none", "inst": "none", "gen": "none", "g": "empty", "a": 0}
    offset = ["a", [[0, 7, -1, "here"], [9, 7, -1, ""]]]
    steps = (
        {"op": "commit", "v": 8, "topics": [offset], **nobody},
        {"op": "fetch", "v": 8, "groups": ["empty"], "topics": None},
        {"op": "describe", "v": 6, "groups": ["empty"]},
        {"op": "join", "v": 9, "a": 0, "g": "empty"},
        {"op": "offset_delete", "v": 0, "a": 0, "g": "empty", "topics": [["a", [0]]]},
        {"op": "delete", "v": 2, "groups": ["empty"]},
        {"op": "fetch", "v": 10, "groups": ["empty"], "topics": None},
        {"op": "delete", "v": 2, "groups": ["empty"]},
    )
    play([Script(0, (Actor(0),), steps)])
