"""Random sequences of group requests mean the same to the lab and to real Kafka 4.

`make differential N=5000 SEED=1` plays more of them. A difference is a bug of the lab, or has its reason in
known.py. What fails prints a script; `python -m tests.lab.differential --script FILE` plays it again.
"""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from kelpie.lab import virtual_time
from kelpie.real.cluster import RealCluster
from tests.lab.differential import recording
from tests.lab.differential.compare import Difference, Played
from tests.lab.differential.generator import Generator
from tests.lab.differential.recording import Recording
from tests.lab.differential.running import both, differences
from tests.lab.differential.script import Actor, Script
from tests.lab.differential.side import REAL_CONFIG

SEED = 1
SEQUENCES = 200
LIVE_SEQUENCES = 20
"""So many are also played on real Kafka, so that the recording cannot be of another one unnoticed."""
TIMED_SEQUENCES = 12


async def _differences(real: str | Recording, scripts: Sequence[Script]) -> tuple[Difference | None, int]:
    """The first difference; and how many scripts this machine was too slow for."""
    async with both(real) as sides:
        found = await differences(sides, scripts, most=1)
        # Of what was recorded, no part can be left out.
        shorter = found and isinstance(real, str)
        return (await sides.shortest(found[0]) if shorter else found[0] if found else None), sides.too_slow


@pytest.fixture
def play(real_kafka: Callable[..., RealCluster]) -> Callable[[Sequence[Script]], None]:
    """Plays scripts on both sides. The shortest way to the first difference is the failure."""
    address = real_kafka("4.3.1", 1, **REAL_CONFIG).bootstrap_servers

    def play(scripts: Sequence[Script]) -> None:
        found, too_slow = asyncio.run(_differences(address, scripts))
        if found is not None:
            pytest.fail(found.text(), pytrace=False)
        if too_slow == len(scripts):
            pytest.skip("This machine is too busy to compare timers.")

    return play


@pytest.mark.real
def test_random_sequences_have_the_same_answers(play: Callable[[Sequence[Script]], None]) -> None:
    """Every error code, generation, state, member and offset, after every step."""
    play([Generator(SEED + number).script() for number in range(LIVE_SEQUENCES)])


def test_random_sequences_have_the_answers_that_real_kafka_gave() -> None:
    """The same, of more scripts: real Kafka was asked once (recording.py)."""
    scripts = [Generator(SEED + number).script() for number in range(SEQUENCES)]
    found = virtual_time.run(_differences(Recording(recording.answers()), scripts))[0]
    assert found is None, found and found.text()


class _Altered(Recording):
    async def play(self, script: Script, prefix: str) -> Played:
        played = await super().play(script, prefix)
        played.seen[-1].group = "another"
        return played


def test_what_real_kafka_did_not_answer_is_a_difference() -> None:
    """The recording is compared, not only read."""
    script = Generator(SEED).script()
    found = virtual_time.run(_differences(_Altered(recording.answers()), [script]))[0]
    assert found is not None
    assert (found.step, found.where, found.real) == (len(script.steps) - 1, "the group", "another")


@pytest.mark.real
def test_members_that_go_silent_are_treated_the_same(play: Callable[[Sequence[Script]], None]) -> None:
    """Sessions, ids given out, and the waits for joins and syncs end alike."""
    play([Generator(SEED + number).timed_script() for number in range(TIMED_SEQUENCES)])


@pytest.mark.real
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
