"""The matrix on real Kafka: nothing above a notice while all is well, and each fault by its own name."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.doctor.matrix.cluster import MatrixCluster
from tests.doctor.matrix.recording import CELLS, cell_name
from tests.doctor.matrix.situations import Situation
from tests.doctor.matrix.watching import watch, wrong
from tests.doctor.matrix.world import World

pytestmark = [pytest.mark.real, pytest.mark.long]


@pytest.mark.parametrize(("release", "situation"), CELLS, ids=cell_name)
def test_the_doctor_says_what_is_so_at_every_moment(
    release: str,
    situation: Situation,
    available: Callable[[], AbstractContextManager[None]],
    tmp_path: Path,
) -> None:
    """Groups of every kind at once, watched with one store, from before the situation until after it."""
    with available(), MatrixCluster(release) as cluster:
        world = World(cluster)
        with world.alive():
            found = wrong(situation, watch(world, situation, tmp_path), world.kinds)
    assert not found, "\n".join(found)
