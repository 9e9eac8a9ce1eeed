"""Fetching, against a registry on loopback that can fail in every way."""

import hashlib
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kelpie.real import fetch, java, ports
from kelpie.real.cluster_errors import Unavailable
from kelpie.real.releases import Jar

pytestmark = pytest.mark.real

_CONTENTS = {"one": b"first jar " * 1000, "two": b"second jar " * 1000}
_JARS = tuple(
    Jar("org.example.farm", name, "1.0", hashlib.sha256(content).hexdigest())
    for name, content in _CONTENTS.items()
)


class Registry(http.server.ThreadingHTTPServer):
    """Serves the jars by their Maven paths. What is in `torn` is cut off, in `silent` never answered."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((ports.HOST, 0), _Handler)
        self.missing: set[str] = set()
        self.torn: set[str] = set()
        self.served: list[str] = []
        self.silent = False
        self.end = threading.Event()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Registry

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        if self.server.silent:
            self.server.end.wait()
            return
        name = self.path.rpartition("/")[2].partition("-")[0]
        if name not in _CONTENTS or name in self.server.missing:
            self.send_error(404)
            return
        content = _CONTENTS[name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.server.served.append(name)
            self.wfile.write(content[:100] if name in self.server.torn else content)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def registry(
    available: Callable[[], AbstractContextManager[None]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Registry]:
    with available():
        fetch.ivy_command()
    with Registry() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("KELPIE_CACHE", str(tmp_path))
        monkeypatch.setenv("KELPIE_REPOSITORY", f"http://{ports.HOST}:{server.server_port}/maven")
        yield server
        server.end.set()
        server.shutdown()
        thread.join()


def _folders(cache: Path) -> list[str]:
    return [path.name for path in (cache / "kafka").glob("[!.]*")]


def test_jars_are_fetched_once(registry: Registry) -> None:
    """From then on nothing is asked of anybody."""
    folder = fetch.libraries("1.0", _JARS)
    registry.served.clear()

    assert fetch.libraries("1.0", _JARS) == folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        f"{name}-1.0.jar": content for name, content in _CONTENTS.items()
    }
    assert registry.served == []


def test_two_at_once_fetch_once(registry: Registry) -> None:
    """The second waits for the first and takes its jars."""
    threads = [threading.Thread(target=fetch.libraries, args=("1.0", _JARS)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(registry.served) == ["one", "two"]


def test_torn_download_is_not_used(registry: Registry, tmp_path: Path) -> None:
    """It is not seen, not by this run and not by the next, which gets the whole."""
    registry.torn = {"two"}

    with pytest.raises(Unavailable, match=r"Kafka 1\.0 cannot be fetched: .*org\.example\.farm:two:1\.0"):
        fetch.libraries("1.0", _JARS)
    assert _folders(tmp_path) == []

    registry.torn = set()
    assert (fetch.libraries("1.0", _JARS) / "two-1.0.jar").read_bytes() == _CONTENTS["two"]


def test_wrong_jar_is_not_used(registry: Registry, tmp_path: Path) -> None:
    """A complete download of something else is as bad as a torn one."""
    wrong = (_JARS[0], Jar("org.example.farm", "two", "1.0", "0" * 64))

    with pytest.raises(Unavailable, match=r"org\.example\.farm:two:1\.0 arrived damaged \(11000 bytes"):
        fetch.libraries("1.0", wrong)
    assert _folders(tmp_path) == []


def test_what_the_registry_lacks_is_named_and_the_rest_is_kept(registry: Registry, tmp_path: Path) -> None:
    """The next try fetches only what was missing."""
    registry.missing = {"two"}
    with pytest.raises(Unavailable, match=r"does not give org\.example\.farm:two:1\.0\. "):
        fetch.libraries("1.0", _JARS)
    assert _folders(tmp_path) == []

    registry.missing = set()
    fetch.libraries("1.0", _JARS)
    assert sorted(registry.served) == ["one", "two"]


def test_changed_list_is_another_download(registry: Registry) -> None:
    """Who upgrades Kelpie must not run a new release on old jars."""
    assert fetch.libraries("1.0", _JARS) != fetch.libraries("1.0", _JARS[:1])


def test_registry_that_says_nothing_is_given_up(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A firewall that swallows packets must not hold up the tests for minutes."""
    registry.silent = True
    monkeypatch.setattr(fetch, "_SILENCE_LIMIT_S", 1.0)

    with pytest.raises(Unavailable, match="registry of jars cannot be reached"):
        fetch.libraries("1.0", _JARS)


def test_fetch_ends_at_its_limit(registry: Registry) -> None:
    """However lively the registry is."""
    registry.silent = True

    with pytest.raises(Unavailable, match="could not be fetched within 1 s"):
        fetch.libraries("1.0", _JARS, limit_s=1.0)


@pytest.mark.parametrize("way", ["repository", "proxy"])
def test_unreachable_registry_is_one_clear_line(
    way: str, registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is missing, where it was sought, what to do. The proxy is the one from the environment."""
    (closed,) = ports.free(1)
    if way == "proxy":
        monkeypatch.delenv("KELPIE_REPOSITORY")
        for scheme in ("http", "https"):
            monkeypatch.setenv(f"{scheme}_proxy", f"http://{ports.HOST}:{closed}")
    else:
        monkeypatch.setenv("KELPIE_REPOSITORY", f"http://{ports.HOST}:{closed}")

    with pytest.raises(Unavailable) as missing:
        fetch.libraries("1.0", _JARS)

    assert str(missing.value) == (
        f"Kafka 1.0 is not in the cache ({tmp_path}) and the registry of jars cannot be reached. "
        "Go online once, or set KELPIE_REPOSITORY to the address of a mirror."
    )


def test_cache_that_cannot_be_written_is_named(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where a folder should be stands for a full or read-only disk."""
    monkeypatch.setenv("KELPIE_CACHE", __file__)

    with pytest.raises(
        Unavailable, match=r"Kafka 1\.0 cannot be fetched: .*test_fetch\.py.*Set KELPIE_CACHE"
    ):
        fetch.libraries("1.0", _JARS)


def test_missing_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing works without it, and it is not ours to install."""
    monkeypatch.setenv("KELPIE_CACHE", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(Unavailable, match=r"Java is missing .*Install Java 17"):
        fetch.libraries("1.0", _JARS)


@pytest.mark.parametrize(
    ("said", "words"), [('echo version \\"11.0.2\\"', "is Java 11"), ("exit 1", "does not say its version")]
)
def test_unfit_java_is_named(said: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kafka 4 needs Java 17; a stack trace about class file versions helps nobody."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text(f"#!/bin/sh\n{said}\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(Unavailable, match=words):
        java.find()


def test_missing_pyspark_is_named(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """It carries Ivy; without the extra that brings it there is nothing to fetch with."""
    monkeypatch.setattr(java, "pyspark_jars", lambda: None)

    with pytest.raises(Unavailable, match=r"Ivy, .* is missing: it comes with PySpark"):
        fetch.libraries("1.0", _JARS)
    assert registry.served == []


@pytest.mark.parametrize("change", ["another", "extra", "missing"])
def test_jars_that_have_changed_are_fetched_anew(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Java runs whatever is in the folder. Every process compares the checksums."""
    folder = fetch.libraries("1.0", _JARS)
    if change == "another":
        (folder / "two-1.0.jar").write_bytes(b"something else")
    elif change == "extra":
        (folder / "a-first.jar").write_bytes(b"something more")
    else:
        (folder / "two-1.0.jar").unlink()
    monkeypatch.setattr(fetch, "_found_whole", set())  # As in another process.
    assert fetch.libraries("1.0", _JARS) == folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        f"{name}-1.0.jar": content for name, content in _CONTENTS.items()
    }


def test_jars_in_a_cache_that_others_may_write_to_are_not_used(registry: Registry, tmp_path: Path) -> None:
    """The message says what to do."""
    folder = fetch.libraries("1.0", _JARS)
    for path in (tmp_path, tmp_path / "kafka", folder):
        path.chmod(0o775)
        with pytest.raises(Unavailable, match=r"Kafka 1\.0 cannot be used: .*\(mode 0775\).*chmod -R go-w"):
            fetch.libraries("1.0", _JARS)
        path.chmod(0o755)


def test_a_jar_that_others_may_write_to_is_not_used(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its checksum is right now; whoever may write to it can change it before Java reads it."""
    folder = fetch.libraries("1.0", _JARS)
    (folder / "two-1.0.jar").chmod(0o666)
    monkeypatch.setattr(fetch, "_found_whole", set())  # As in another process.
    with pytest.raises(Unavailable, match=r"two-1\.0\.jar can be written by others"):
        fetch.libraries("1.0", _JARS)
