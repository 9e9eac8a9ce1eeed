"""The matrix on real Kafka: nothing above a notice while all is well, and each fault by its own name."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kelpie.real.cluster import RealCluster
from tests.doctor.matrix.recording import file_of
from tests.doctor.matrix.situations import SITUATIONS, Situation
from tests.doctor.matrix.watching import watch, wrong
from tests.doctor.matrix.world import BROKERS, CONFIG, VERSION, World

pytestmark = [pytest.mark.real, pytest.mark.long]


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_the_doctor_says_what_is_so_at_every_moment(
    situation: Situation, fresh_real_kafka: Callable[..., RealCluster], tmp_path: Path
) -> None:
    """Groups of every kind at once, watched with one store, from before the situation until after it."""
    if not file_of(situation.name).exists():
        pytest.skip(f"not recorded: python -m tests.doctor.matrix.record {situation.name}")
    moments = watch(World(fresh_real_kafka(VERSION, BROKERS, **CONFIG)), situation, tmp_path)
    found = wrong(situation, moments)
    if found and situation.known_fault:
        pytest.xfail(situation.known_fault)
    assert not found, "\n".join(found)
