"""Whatever becomes of the process that started real servers, they end; and nobody else does."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kelpie.real.identity import ProcessIdentity
from kelpie.real.keeper import Keeper
from kelpie.real.zookeeper import RealZooKeeper

WaitUntil = Callable[..., None]

# Prints what it started, then waits. With "fork", a child of its own keeps its pipes open.
_OWNER = """
import os, sys, time
from kelpie.real.zookeeper import RealZooKeeper

with RealZooKeeper() as server:
    child = os.fork() if "fork" in sys.argv else None
    if child != 0:
        print(server.nodes["zookeeper"].process.pid, child or 0, server.root, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.mark.real
@pytest.mark.parametrize("way", ["plain", "fork"])
def test_killed_owner_leaves_no_server_behind(
    way: str, real_zookeeper: RealZooKeeper, wait_until: WaitUntil
) -> None:
    """SIGKILL runs no handler and no finally: only another process can clean up."""
    del real_zookeeper  # Asked for because it skips where ZooKeeper cannot be had.
    with subprocess.Popen([sys.executable, "-c", _OWNER, way], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid, fork, root = owner.stdout.readline().split(maxsplit=2)
        server = ProcessIdentity.of(int(pid))
        assert server is not None

        owner.kill()
        owner.wait()

        try:
            wait_until(lambda: not server.alive)
            wait_until(lambda: not Path(root.strip()).exists())
        finally:
            if int(fork):
                os.kill(int(fork), signal.SIGKILL)


def test_guardian_spares_a_stranger_with_the_same_number(
    sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """Numbers are given out again; the time of the start tells two bearers of one apart."""
    keeper = Keeper()
    keeper.own(tmp_path / "folder")
    (tmp_path / "folder").mkdir()
    keeper.watch(ProcessIdentity(sleeper.pid, "another start"))

    keeper.clean()

    assert not (tmp_path / "folder").exists()
    assert sleeper.poll() is None


def test_guardian_ends_what_it_was_told_of(sleeper: subprocess.Popen[bytes]) -> None:
    """The counterpart: the right start time, and the process is ended."""
    keeper = Keeper()
    identity = ProcessIdentity.of(sleeper.pid)
    assert identity is not None
    keeper.watch(identity)

    keeper.clean()

    assert sleeper.wait(30) == -signal.SIGKILL


def test_released_and_forgotten_processes_live_on(sleeper: subprocess.Popen[bytes]) -> None:
    """A cluster that a person started outlives the command; one that ended is nobody's business."""
    identity = ProcessIdentity.of(sleeper.pid)
    assert identity is not None
    released, forgetful = Keeper(), Keeper()
    released.watch(identity)
    forgetful.watch(identity)
    forgetful.forget(identity)

    released.release()
    forgetful.clean()

    assert sleeper.poll() is None


def test_a_zombie_is_dead_and_a_stranger_gets_no_signal(sleeper: subprocess.Popen[bytes]) -> None:
    """Signals go to a process, not to whoever has its number."""
    identity = ProcessIdentity.of(sleeper.pid)
    assert identity is not None

    assert not ProcessIdentity(sleeper.pid, "another start").signal(signal.SIGKILL)
    assert identity.alive
    assert identity.signal(signal.SIGKILL)
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)  # Dead, and not yet reaped.
    assert not identity.alive
    assert ProcessIdentity.of(sleeper.pid) is None
