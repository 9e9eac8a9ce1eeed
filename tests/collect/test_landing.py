"""The landing folder: whole files, one collector, a limit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kelpie.collect.landing import SURVEY, Landing, TooLarge, clusters_at, name_of
from kelpie.collect.landing_folders import LandingRefused
from kelpie.evidence.archives import Budget
from kelpie.evidence.files import Search
from kelpie.evidence.snapshot_files import Header, pack
from kelpie.observations import Observations
from kelpie.places import Place, RemotePath, place_of

NOW = 1_794_806_467_133


def a_file(cluster: str = "c", at: int = NOW, bootstrap: str = "h:1") -> bytes:
    return pack(Header(cluster, at, at, bootstrap, answered=1), Observations())


def fill(landing: Landing, count: int, start: int = NOW) -> list[Place]:
    return [
        landing.publish(SURVEY, a_file(landing.cluster, start + at), start + at)[0] for at in range(count)
    ]


def test_names_sort_by_time_also_when_the_clock_goes_back(tmp_path: Path) -> None:
    """A reader that goes by names must not take an old look for a new one; nor may one replace another."""
    with Landing(tmp_path, "c") as landing:
        paths = [landing.publish(SURVEY, a_file(), at)[0] for at in (NOW, NOW + 5, NOW - 86_400_000, NOW)]
    assert paths == sorted(paths, key=str)
    assert len(set(paths)) == 4
    with Landing(tmp_path, "c") as again:
        assert str(again.publish(SURVEY, a_file(), NOW - 1)[0]) > str(paths[-1])


def test_a_second_collector_is_refused_and_a_dead_one_is_not_waited_for(tmp_path: Path) -> None:
    """Two would delete each other's files. A lock that outlives its holder would need a person."""
    holding = (
        "import os, sys; from pathlib import Path; from kelpie.collect.landing import Landing\n"
        "landing = Landing(Path(sys.argv[1]), 'c').__enter__(); print(os.getpid(), flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holding, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        process = other.stdout.readline().strip()
        with pytest.raises(
            LandingRefused, match=rf"Another kelpie collect \(process {process}\).* of cluster c "
        ):
            Landing(tmp_path, "c").__enter__()
        with Landing(tmp_path, "d"):
            """Another cluster may share the folder."""
        other.kill()
        other.wait()
    with Landing(tmp_path, "c") as landing:
        fill(landing, 1)
        assert (tmp_path / ".collect-c.lock").read_text() == f"{os.getpid()}\n"


def test_what_a_killed_collector_left_is_removed_and_never_read(tmp_path: Path) -> None:
    """Its own leftovers, not those of others."""
    own = tmp_path / ".survey-c-20261116T051230.123Z.jsonl.gz.tmp"
    others = [tmp_path / ".survey-d-20261116T051230.123Z.jsonl.gz.tmp", tmp_path / ".mine.tmp"]
    for path in (own, *others):
        path.write_bytes(a_file()[:40])
    read = [file.name for file in Search(tmp_path, Budget()).files([tmp_path])]
    assert not any("survey" in name for name in read)
    with Landing(tmp_path, "c"):
        assert not own.exists()
    assert all(path.exists() for path in others)


def test_the_oldest_own_files_go_and_no_others(tmp_path: Path) -> None:
    """Files that only look alike, files of other clusters, and whatever else lies there, stay."""
    size = len(a_file())
    with Landing(tmp_path, "d") as other:
        (theirs,) = fill(other, 1, NOW - 1000)
    named_alike = tmp_path / "survey-c-20200101T000000.000Z.jsonl.gz"
    named_alike.write_bytes(b"somebody's own")
    of_another = tmp_path / "survey-c-20200101T000000.001Z.jsonl.gz"
    of_another.write_bytes(a_file("another"))
    with Landing(tmp_path, "c", most_bytes=4 * size) as landing:
        paths = fill(landing, 4)
        _, deleted = landing.publish(SURVEY, a_file(), NOW + 100)
        assert [it.path for it in deleted] == paths[:1]
        with pytest.raises(TooLarge):
            landing.publish(SURVEY, a_file() * 5, NOW + 200)
    assert [path.exists() for path in paths] == [False, True, True, True]
    assert theirs.exists()
    assert named_alike.exists()
    assert of_another.exists()
    with Landing(tmp_path, "c", most_bytes=2 * size) as smaller:
        assert len(smaller.publish(SURVEY, a_file(), NOW + 300)[1]) == 3


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    """Where and why, in one line."""
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/kelpie")):
        with pytest.raises(LandingRefused, match=r"cannot be used: "):
            Landing(folder, "c").__enter__()


def test_the_folder_remembers_which_cluster_was_where(tmp_path: Path) -> None:
    """For the day on which nobody answers, and for the day on which somebody else does."""
    assert clusters_at(tmp_path / "missing", ["h:1"]) == []
    with Landing(tmp_path, "c") as landing:
        landing.publish(SURVEY, a_file("c", bootstrap="h:1,h:2"), NOW)
    with Landing(tmp_path, "d") as landing:
        landing.publish(SURVEY, a_file("d", bootstrap="h:3"), NOW + 9)
    assert clusters_at(tmp_path, ["h:2", "h:9"]) == ["c"]
    assert clusters_at(tmp_path, ["h:3"]) == ["d"]
    assert clusters_at(tmp_path, ["h:4"]) == []


@pytest.mark.parametrize("cluster", ["../../etc", "a/b", "10.0.0.1:9092,10.0.0.2:9092", "x" * 300, "\n", "-"])
def test_any_cluster_has_a_name_that_files_can_have(cluster: str, tmp_path: Path) -> None:
    """Ids come from brokers, addresses from people."""
    assert "/" not in name_of(cluster)
    assert len(name_of(cluster)) < 100
    with Landing(tmp_path, cluster) as landing:
        (path,) = fill(landing, 1)
    assert path.parent == tmp_path
    with Landing(tmp_path, cluster) as landing:
        assert landing.newest_survey() == path


@pytest.mark.real
@pytest.mark.parametrize("name", ["s3", pytest.param("hdfs", marks=pytest.mark.wide)])
def test_files_land_on_a_store_as_in_a_folder(name: str, request: pytest.FixtureRequest) -> None:
    """In order, the oldest going first, nothing of others deleted, and known again by the next collector."""
    store: RemotePath = request.getfixturevalue(name)
    size = len(a_file())
    alike = store / "survey-c-20200101T000000.000Z.jsonl.gz"
    alike.write_bytes(b"x")
    with Landing(store, "c", most_bytes=4 * size) as landing:
        paths = fill(landing, 3)
        _, deleted = landing.publish(SURVEY, a_file(), NOW + 100)
        assert [file.path for file in deleted] == paths[:1]
        assert landing.newest_survey() == max(path for path in store.iterdir())
    assert alike.exists()
    assert clusters_at(store, ["h:1"]) == ["c"]
    with Landing(store, "c") as again:
        assert str(again.publish(SURVEY, a_file(), NOW - 1)[0]) > str(paths[-1])
    found = [file for file in Search(Path(), Budget()).files([store]) if "survey" in file.name]
    assert len(found) == 5


@pytest.mark.real
def test_of_two_collectors_on_a_store_one_ends(s3: RemotePath) -> None:
    """There is no lock: the one that finds the files of the other says so and ends."""
    with Landing(s3, "c") as one, Landing(s3, "c") as other:
        fill(one, 1)
        with pytest.raises(LandingRefused, match="Another kelpie collect writes snapshots of cluster c into"):
            fill(other, 1, NOW + 1000)
        fill(one, 1, NOW + 2000)


def test_a_store_that_cannot_be_reached_is_told() -> None:
    """Where and why, in one line."""
    with pytest.raises(LandingRefused, match=r"hdfs://127\.0\.0\.1:1/x cannot be used: No NameNode at"):
        Landing(place_of("hdfs://127.0.0.1:1/x"), "c")
