"""Kafka 4.3.1's console tools print the same, whether they talk to the lab or to Kafka."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.clients.clusters import Kafka
from tests.lab.java import scenes
from tests.lab.java.jvm import Said


@pytest.mark.parametrize("scene", sorted(scenes.FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_scene_is_the_same(scene: Path, kafka: Kafka, tool: Callable[..., Said], tmp_path: Path) -> None:
    """An operator sees no difference. Each scene says in its first line what it is for."""
    if kafka.kind == "real" and os.environ.get("KELPIE_RECORD") == "1":
        scene.write_text(scenes.play(scene, tool, tmp_path, recording=True))
    else:
        assert scenes.play(scene, tool, tmp_path) == scene.read_text()
