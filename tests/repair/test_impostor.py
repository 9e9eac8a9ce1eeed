"""A broker that says it is another cluster cannot change where a group is moved to go on."""

import json
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.client.nodes import Nodes
from kelpie.lab import SyncCluster
from tests.repair.scene import GROUP, a_cluster, commit, committed, strike


def test_offsets_of_an_impostor_are_not_used(
    cluster: SyncCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It claims the id of a known cluster, and that the group has read further than it has."""
    monkeypatch.setenv("KELPIE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(Nodes, "cluster_id", property(lambda _: "one-id", lambda *_: None), raising=False)
    truth = committed(cluster, GROUP)
    main(["doctor", "-b", cluster.bootstrap_servers])
    assert "says that its id is" not in capsys.readouterr().err
    with a_cluster() as impostor:
        commit(impostor, GROUP, dict.fromkeys(truth, 10))
        main(["doctor", "-b", impostor.bootstrap_servers])
    assert "says that its id is one-id" in " ".join(capsys.readouterr().err.split())
    strike(cluster, GROUP, tmp_path / "disks")
    ask = ["rehome", "-b", cluster.bootstrap_servers, "--timeout", "5", GROUP, "--offsets-from", "store"]
    assert main([*ask, "--apply", "--json"]) == 0
    name = json.loads(capsys.readouterr().out)["details"]["new_name"]
    assert committed(cluster, name) == truth
