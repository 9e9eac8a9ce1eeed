"""Which clusters `kelpie serve` is told to show."""

import argparse
from contextlib import ExitStack
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.cli.command import CommandError
from kelpie.cli.served_clusters import named_clusters
from kelpie.client import SyncAdmin
from kelpie.client.settings import Settings
from kelpie.examination import Examination
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.web.watch import Watch
from tests.web.watching import client, looked


def arguments(**given: object) -> argparse.Namespace:
    usual: dict[str, object] = {
        "bootstrap_server": None,
        "profile": None,
        "command_config": None,
        "zookeeper": None,
        "evidence": [],
    }
    return argparse.Namespace(**{**usual, **given})


def test_clusters_are_named_by_their_addresses_or_as_people_say() -> None:
    named = named_clusters(arguments(bootstrap_server=["a:9092,b:9092", "west=c:9092", "x/y=d:9092"]))
    assert {name: of.bootstrap_server for name, of in named.items()} == {
        "a:9092,b:9092": "a:9092,b:9092",
        "west": "c:9092",
        "x y": "d:9092",
    }


def test_profiles_are_clusters_with_their_own_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "kelpie").mkdir()
    (tmp_path / "kelpie" / "profiles.toml").write_text(
        '[east]\nbootstrap = "e:9092"\ncommand-config = "east.properties"\n[west]\nbootstrap = "w:9092"\n'
    )
    named = named_clusters(arguments(profile=["east", "west"], bootstrap_server=["z:9092"]))
    assert {name: of.bootstrap_server for name, of in named.items()} == {
        "z:9092": "z:9092",
        "east": "e:9092",
        "west": "w:9092",
    }
    assert str(named["east"].command_config).endswith("east.properties")
    assert named["west"].command_config is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bootstrap_server": ["a=x:1", "a=y:1"]}, "Two clusters are called a"),
        ({"bootstrap_server": ["=x:1"]}, "no name"),
        ({"bootstrap_server": ["a:1", "b:1"], "evidence": [Path()]}, "--zookeeper and --evidence"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        named_clusters(arguments(**given))


@pytest.mark.parametrize(
    ("options", "said"),
    [([], "What should it show?"), (["--tables", "/nowhere"], "There are no tables in /nowhere")],
)
def test_it_says_what_is_missing(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--no-store", *options]) == 64
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_dead_cluster_delays_neither_another_nor_a_page() -> None:
    """Nothing listens at its address; meanwhile the other one is shown, and what is known of this one."""
    with SyncCluster(1, offsets_partitions=4) as cluster, ExitStack() as stack:
        cluster.create_topic("orders", partitions=1)
        with SyncAdmin(cluster.bootstrap_servers, patience_s=30) as admin:
            admin.commit("billing", {TopicPartition("orders", 0): 0})
        dead = stack.enter_context(Watch("dead", Examination(Settings.of("192.0.2.1:9092")), 3600))
        live = stack.enter_context(Watch("live", Examination(Settings.of(cluster.bootstrap_servers)), 3600))
        looked(live)
        browser = client([dead, live])
        assert browser.get("/clusters/live/groups.json").json()["count"] == 1
        rows = browser.get("/index.json").json()["clusters"]
        assert [row["cluster"] for row in rows] == ["dead", "live"]
        if dead.latest is None:
            assert browser.get("/clusters/dead/overview").status_code == 503
