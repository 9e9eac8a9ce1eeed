"""Frames of windows that cost no more than the rows."""

from pathlib import Path

import kelpie.pipeline.transforms

_TRANSFORMS = Path(kelpie.pipeline.transforms.__file__).parent


def test_no_frame_ends_with_the_last_row() -> None:
    """Spark goes through such a frame anew for each row: `windows.following` tells the same in one go."""
    assert [it.name for it in _TRANSFORMS.glob("*.py") if "Window.unboundedFollowing" in it.read_text()] == []
