from collections.abc import Iterator
from pathlib import Path

import pytest

from kelpie.lab import SyncCluster
from tests.repair.scene import GROUP, a_cluster, commit


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files for undo, and earlier surveys, are the test's own."""
    monkeypatch.setenv("KELPIE_STATE", str(tmp_path / "state"))


@pytest.fixture
def cluster() -> Iterator[SyncCluster]:
    """A lab cluster with a group that has committed."""
    with a_cluster() as cluster:
        commit(cluster, GROUP, {0: 4, 1: 7})
        yield cluster
