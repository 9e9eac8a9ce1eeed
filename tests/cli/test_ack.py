"""`kelpie ack`: what people know about is told in one line, and sets no exit status, for a while."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.lab import SyncCluster

Kelpie = Callable[..., tuple[int, str, str]]
BEFOREHAND = ("--cluster", "c", "--severity", "notice")


@pytest.fixture(scope="module")
def cluster() -> Iterator[SyncCluster]:
    """A cluster whose offsets topic hangs on one broker: a warning about the cluster (KLP106)."""
    with SyncCluster(2, replication=1, offsets_partitions=2) as cluster:
        compacted = {"cleanup.policy": "compact"}
        cluster.create_topic("__consumer_offsets", assignment={0: (1,), 1: (2,)}, config=compacted)
        yield cluster


@pytest.fixture
def kelpie(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Kelpie:
    def run(command: str, *words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([command, *words, "--store", str(tmp_path)])
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def test_an_acknowledged_finding_sets_no_status_until_it_is_taken_back(
    cluster: SyncCluster, kelpie: Kelpie, tmp_path: Path
) -> None:
    """Look, acknowledge, look again, list, export, import elsewhere, take back."""
    place = ("-b", cluster.bootstrap_servers)
    assert kelpie("doctor", *place)[0] == 1
    status, told, _ = kelpie("ack", "KLP106", "--until", "3d", "--why", "it is a test", "--by", "ann", *place)
    assert (status, "up to warning" in told) == (0, True)

    status, page, _ = kelpie("doctor", *place)
    assert status != 1
    assert "by ann: it is a test (KLP106)." in " ".join(page.split())
    document = json.loads(kelpie("doctor", "--json", *place)[1])
    assert [each["acknowledged"]["by"] for each in document["findings"] if each["code"] == "KLP106"] == [
        "ann",
        "ann",
    ]

    assert "KLP106 (cluster)  warning" in kelpie("ack", "--list")[1]
    export = tmp_path / "export.json"
    export.write_text(kelpie("ack", "--list", "--json")[1])
    assert kelpie("ack", "--remove", "klp106", *place)[0] == 0
    assert kelpie("doctor", *place)[0] == 1
    assert kelpie("ack", "--remove", "KLP106")[0] == 1
    assert kelpie("ack", "--import", str(export))[1] == "1 added.\n"
    assert kelpie("doctor", *place)[0] != 1


def test_what_no_look_found_needs_a_word_on_how_bad_it_may_get(cluster: SyncCluster, kelpie: Kelpie) -> None:
    """A misspelt group would be acknowledged for nothing."""
    place = ("-b", cluster.bootstrap_servers)
    words = ("billing", "KLP310", "--until", "2099-12-01", "--why", "planned", *place)
    status, _, told = kelpie("ack", *words)
    assert (status, "No look at" in told) == (64, True)
    kelpie("doctor", *place)
    status, _, told = kelpie("ack", *words)
    assert (status, "found no KLP310 for billing" in told) == (64, True)
    assert kelpie("ack", *words, "--severity", "warning")[0] == 0
    assert "2099-12-01 00:00:00 UTC" in kelpie("ack")[1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("KLP999", "--until", "3d", "--why", "x"), "no finding 'KLP999'"),
        (("a", "b", "KLP310"), "one group"),
        (("a", "KLP310", "--until", "3d", "--cluster", "c"), "and why"),
        (
            ("a", "KLP310", "--until", "1999-01-01", "--why", "x", "--cluster", "c", "--severity", "notice"),
            "over",
        ),
        (
            ("a", "KLP310", "--until", "soon", "--why", "x", "--cluster", "c", "--severity", "notice"),
            "no time",
        ),
        (("a", "KLP310", "--until", "3d", "--why", "x"), "Which cluster?"),
        (("", "KLP310", "--until", "3d", "--why", "x"), "empty name"),
    ],
)
def test_mistakes_are_told(words: tuple[str, ...], told: str, kelpie: Kelpie) -> None:
    """Each with what to do instead."""
    status, _, said = kelpie("ack", *words)
    assert (status, told in said) == (64, True)
