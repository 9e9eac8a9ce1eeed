"""A real consumer of 0.8.2.2 gives up in front of `kelpie doctor --zookeeper`, which names exactly that one.

As in the tests of the guard: "b" is killed, and "d" joins. Then c, which runs, meets partition 2 of the dead
one, and gives up:

    before         b: 0 1 2  c: 3 4 5
    "d" joins      b: 0 1    c: 2 3    d: 4 5
"""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kelpie.cli import main
from kelpie.client.zookeeper_nodes import TreeReader
from kelpie.real.cluster import RealCluster
from tests.client.zookeeper_client import kazoo_client
from tests.console_group import ConsoleGroup

pytestmark = [pytest.mark.real, pytest.mark.long]
LIMIT_S = 90.0
FAILED = "ConsumerRebalanceFailedException"
LASTING = {"zookeeper.session.timeout.ms": 40_000}
"""The doctor looks three times while the dead one's session lives."""


@pytest.fixture
def group(real_kafka: Callable[..., RealCluster], tmp_path: Path) -> Iterator[ConsoleGroup]:
    cluster = real_kafka("0.8.2.2")
    hosts = cluster.zookeeper_connect
    assert hosts is not None
    with kazoo_client(hosts) as client, ExitStack() as stack:
        name = f"examined-{uuid.uuid4().hex[:8]}"
        yield ConsoleGroup(cluster, name, tmp_path, TreeReader(client, hosts, 10), stack, settings=LASTING)


def _examined(
    group: ConsoleGroup, capsys: pytest.CaptureFixture[str], *more: str
) -> dict[str, dict[str, Any]]:
    """Code → finding, as the command prints them for this group."""
    capsys.readouterr()
    main(["doctor", "--zookeeper", group.hosts, group.name, "--json", *more])
    findings = json.loads(capsys.readouterr().out)["findings"]
    return {finding["code"]: finding for finding in findings if finding["group"] == group.name}


def test_the_doctor_names_the_consumer_that_gave_up_and_no_other(
    group: ConsoleGroup,
    tmp_path: Path,
    wait_until: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It asks ZooKeeper twice; while all is well, and when the group has healed, it claims nothing."""
    killed = group.start("b")
    wait_until(lambda: group.shares() == {"b": 6}, limit_s=LIMIT_S)
    group.start("c")
    wait_until(lambda: group.shares() == {"b": 3, "c": 3}, limit_s=LIMIT_S)
    assert _examined(group, capsys) == {}

    killed.kill()
    group.start("d")
    wait_until(lambda: FAILED in group.said("c"), limit_s=LIMIT_S)
    wait_until(lambda: group.shares().get("d") == 2, limit_s=LIMIT_S)
    assert {"b", "c", "d"} <= group.members(), "the session has ended too early for this test"

    def members(finding: dict[str, Any]) -> set[str]:
        return {name.removeprefix(f"{group.name}_") for name in finding["members"]}

    by_tree = _examined(group, capsys)
    assert by_tree.keys() == {"KLP502", "KLP503"}, "without logs and settings, c may still try"
    assert members(by_tree["KLP502"]) == {"c"}
    with_files = _examined(group, capsys, "--evidence", str(tmp_path))
    assert with_files.keys() == {"KLP501", "KLP502", "KLP503", "KLP504"}
    assert members(with_files["KLP501"]) == {"c"}
    assert with_files["KLP501"]["severity"] == "critical"
    wait_until(lambda: "b" not in group.members(), limit_s=LIMIT_S)
    wait_until(lambda: group.shares() == {"c": 3, "d": 3}, limit_s=LIMIT_S)
    assert _examined(group, capsys) == {}, "the change of the group has healed it"
