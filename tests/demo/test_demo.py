"""`make demo`: it shows what it promises, keeps the terminal clean, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parents[2]
_LIMIT_S = 900.0
_FOUND = ("KLP101", "KLP203", "KLP302", "KLP306", "KLP401")
"""One for each incident."""
_NOISE = re.compile(r"%\d\||rdkafka#|Traceback|Exception|WARN ")
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/")


class Run:
    """The demo in a process of its own, with its temporary files in a folder of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._mark = f"demo-{uuid.uuid4()}"
        self._said = folder / "said.txt"
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        environment = {**os.environ, "TMPDIR": str(self.temporary), "KELPIE_DEMO_MARK": self._mark}
        with self._said.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "demo", *options],
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def said(self) -> str:
        return self._said.read_text(encoding="utf-8")

    def wait_for(self, text: str | re.Pattern[str]) -> str:
        """What it said, when that contains a text."""
        deadline = time.monotonic() + _LIMIT_S
        while (found := re.search(text, self.said)) is None:
            assert self._process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)
        return found[0]

    def wait_for_page(self, address: str) -> None:
        """The address is said a moment before somebody listens there."""
        deadline = time.monotonic() + _LIMIT_S
        while True:
            try:
                with urlopen(address, timeout=_LIMIT_S) as page:
                    assert b"Kelpie" in page.read()
                    return
            except URLError:
                assert time.monotonic() < deadline
                time.sleep(0.1)

    def interrupt(self) -> int:
        self._process.send_signal(signal.SIGINT)
        return self.end()

    def end(self) -> int:
        return self._process.wait(_LIMIT_S)

    def left_running(self) -> list[str]:
        """Processes that the demo has started, by what they inherit from it."""
        left = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark.encode() in (process / "environ").read_bytes():
                    left.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue  # It has just ended, or is somebody else's.
        return left


@contextmanager
def a_run(folder: Path, *options: str) -> Iterator[Run]:
    run = Run(folder, *options)
    try:
        yield run
    finally:
        run._process.kill()
        run._process.wait()
    assert run.left_running() == []
    assert list(run.temporary.iterdir()) == []


@pytest.mark.long
def test_ctrl_c_in_the_middle_leaves_nothing_running(tmp_path: Path) -> None:
    """Brokers, clients and the collector end with it; so does its folder."""
    with a_run(tmp_path, "--no-tables", "--no-pages") as run:
        run.wait_for("Lost label")
        assert run.interrupt() == 130
        assert not _NOISE.search(run.said)


@pytest.mark.long
def test_the_pages_are_there_until_ctrl_c(tmp_path: Path) -> None:
    """They show the outage of this run. The doctor has named all five incidents before."""
    with a_run(tmp_path, "--no-tables") as run:
        address = run.wait_for(_ADDRESS)
        found = {code for code in _FOUND if code in run.said}
        run.wait_for_page(address)
        assert run.interrupt() == 0
        assert found == set(_FOUND)
        assert re.search(r"KLP401[^:]*:? Group clicks-\d+|KLP401 [^\n]*\n +Group clicks-\d+", run.said)
        assert not _NOISE.search(run.said)


@pytest.mark.long
def test_the_whole_demo(tmp_path: Path) -> None:
    """With Spark, as `make demo SERVE=0` runs it: the doctor finds in the tables what it found alive."""
    with a_run(tmp_path, "--no-pages") as run:
        assert run.end() == 0
        live, _, tables = run.said.partition("--tables")
        assert [code for code in _FOUND if code not in live] == []
        assert [code for code in ("KLP101", "KLP302") if code not in tables] == []
        assert not _NOISE.search(run.said)


@pytest.mark.long
@pytest.mark.parametrize(
    "moment", ["1\\. A cluster", "kelpie doctor -b", "starting Spark|kelpie pipeline stream"]
)
def test_ctrl_c_at_any_moment(tmp_path: Path, moment: str) -> None:
    """Also before the clients have joined, while a command runs, and while Spark does."""
    with a_run(tmp_path, "--no-pages") as run:
        run.wait_for(moment)
        assert run.interrupt() == 130
        assert not _NOISE.search(run.said)
