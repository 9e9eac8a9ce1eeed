"""The recordings themselves: they unpack, they have their truth, and they betray no machine."""

import re
import tarfile
from pathlib import Path

import pytest

from tests.evidence import NAMES, truth, unpacked

HERE = Path(__file__).parent


def test_all_recordings_are_there() -> None:
    """Tests and the demo ask for them by name."""
    assert NAMES == (
        "kafka-0.8.2.2-rebalance-failure",
        "kafka-0.9.0.1-coordinator-outage",
        "kafka-4.3.1-coordinator-outage",
        "kop-3.2-scrapes",
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_unpacks_and_has_its_truth_beside_it(name: str) -> None:
    """What is right must be known, and must not lie where a diagnosis could read it."""
    assert any(unpacked(name).iterdir())
    assert unpacked(name) is unpacked(name)
    assert (truth(name) / "README.md").is_file()
    assert not {path.name for path in unpacked(name).iterdir()} & {
        path.name for path in truth(name).iterdir()
    }


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_depends_on_nothing_but_its_content(name: str) -> None:
    """Packed again, it must come out the same: names in order, no times, no owners."""
    with tarfile.open(HERE / f"{name}.tar.xz") as archive:
        members = archive.getmembers()
    assert [member.name for member in members] == sorted(member.name for member in members)
    assert {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, 0, "", "")}


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_names_no_machine_but_the_loopback(name: str) -> None:
    """It was made somewhere; where is nobody's business."""
    paths = re.compile(rb"/(?:work|root|mnt|srv|Users)/|/home/(?!kafka)")
    hosts = re.compile(rb"host\.name=(?!localhost|host-1|127\.0\.0\.1)\S|os\.version=(?!<removed>)")
    addresses = re.compile(rb"\b(?:10|172|192)\.\d{1,3}\.\d{1,3}\.\d{1,3}\b")
    for file in (*unpacked(name).rglob("*"), *truth(name).iterdir()):
        if file.is_file():
            data = file.read_bytes()
            for pattern in (paths, hosts, addresses):
                assert not pattern.search(data), file
