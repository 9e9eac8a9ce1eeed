"""Where compiled code is kept: what others may have written is not run."""

from pathlib import Path

import pytest

from kelpie.pipeline.decoding import compiled
from kelpie.pipeline.decoding.compiled import Locator


@pytest.mark.parametrize("opened", ["file", "folder", "cache"])
def test_compiled_code_that_others_may_have_written_is_not_used(
    opened: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numba keeps it as pickle. Without it, each process compiles for itself."""
    monkeypatch.setenv("KELPIE_CACHE", str(tmp_path / "cache"))
    compiled._folder.cache_clear()
    try:
        locator = Locator.from_function(test_compiled_code_that_others_may_have_written_is_not_used, "")
        assert locator is not None
        folder = Path(locator.get_cache_path())
        (folder / "some.nbc").touch(0o644)
        paths = {"file": folder / "some.nbc", "folder": folder, "cache": tmp_path / "cache"}
        paths[opened].chmod(0o777)
        compiled._folder.cache_clear()
        assert Locator.from_function(test_compiled_code_that_others_may_have_written_is_not_used, "") is None
    finally:
        compiled._folder.cache_clear()
