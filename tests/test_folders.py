"""The cache holds code. Nothing is taken from one that others may write to."""

import os
import stat
from pathlib import Path

import pytest

from kelpie import folders
from kelpie.folders import Untrusted


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "some" / "cache"
    monkeypatch.setenv("KELPIE_CACHE", str(folder))
    return folder


def test_the_cache_is_made_for_its_owner_only(cache: Path) -> None:
    """Whatever the umask says."""
    before = os.umask(0)
    try:
        made = folders.trusted_cache("kafka", "deeper")
    finally:
        os.umask(before)
    assert made == cache / "kafka" / "deeper"
    for folder in (cache, cache / "kafka", made):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
@pytest.mark.parametrize("inner", [False, True])
def test_a_cache_that_others_may_write_to_is_refused(cache: Path, mode: int, *, inner: bool) -> None:
    """Also where only a folder in it is open to them. The text says what to do."""
    made = folders.trusted_cache("kafka")
    (made if inner else cache).chmod(mode)
    with pytest.raises(Untrusted) as refused:
        folders.trusted_cache("kafka")
    assert f"(mode {mode:04o})" in str(refused.value)
    assert f"chmod -R go-w {cache}" in str(refused.value)
    assert "KELPIE_CACHE" in str(refused.value)


def test_a_cache_that_others_may_only_read_is_used(cache: Path) -> None:
    """What mkdir makes with the usual umask, and what earlier releases made."""
    cache.mkdir(parents=True)
    cache.chmod(0o755)
    assert folders.trusted_cache() == cache


def test_a_cache_of_another_user_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner can change it at any time. Root can in any case."""
    folders.trusted_cache()
    owner = cache.stat().st_uid
    monkeypatch.setattr(folders, "_ROOT", -1)
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(Untrusted, match=rf"belongs to another user \(uid {owner}\)"):
        folders.trusted_cache()
    monkeypatch.setattr(folders, "_ROOT", owner)
    assert folders.trusted_cache() == cache


def test_a_file_that_others_may_write_is_refused(cache: Path) -> None:
    """A folder may be closed now, and have been open before."""
    file = folders.trusted_cache() / "file"
    file.touch(0o600)
    assert folders.trusted(file) == file
    file.chmod(0o666)
    with pytest.raises(Untrusted):
        folders.trusted(file)
