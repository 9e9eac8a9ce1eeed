"""`kelpie mappings` on a real ZooKeeper, with real consumers on a lab cluster."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kelpie.attribution.addresses import mapping_path
from kelpie.attribution.requests import Create, Delete, Put
from kelpie.cli import main
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.lab import SyncCluster
from kelpie.observations import GroupState, Member
from kelpie.real.cluster import RealCluster
from kelpie.real.zookeeper import RealZooKeeper
from kelpie.repair.applying import Repair, RepairResult
from kelpie.repair.change_records import ChangeRecord, MappingsChange, records
from kelpie.repair.mapping_survey import MappingTree, mapped_members, survey_mappings
from kelpie.repair.mapping_undo import NodeChange, changes_of
from kelpie.repair.mappings import MappingOptions, check, repair
from kelpie.repair.undo import undo
from tests import documents
from tests.client.group_members import consuming
from tests.client.inhabitants import Inhabitants
from tests.client.zookeeper_client import create_nodes, kazoo_client
from tests.repair.scene import GROUP, do, home, replicas_of, with_nodes

pytestmark = pytest.mark.real
ROOT = "/client_group_id"
HOST = "127.0.0.1"


@pytest.fixture
def zookeeper(real_zookeeper: RealZooKeeper) -> Iterator[Any]:
    with kazoo_client(real_zookeeper.connect) as client:
        yield client


class Tree:
    """The tree of a test: written and read with a client of the test's own."""

    def __init__(self, hosts: str, client: Any) -> None:
        self.hosts, self.client = hosts, client
        self.at = MappingTree(hosts)

    def write(self, mappings: Mapping[str, str]) -> None:
        nodes = {f"{ROOT}/{name}": group.encode() for name, group in mappings.items()}
        create_nodes(self.client, {ROOT: b""} | nodes)

    def set(self, name: str, group: str) -> None:
        self.client.set(f"{ROOT}/{name}", group.encode())

    @property
    def mappings(self) -> dict[str, str]:
        if not self.client.exists(ROOT):
            return {}
        names = self.client.get_children(ROOT)
        return {name: self.client.get(f"{ROOT}/{name}")[0].decode() for name in names}


@pytest.fixture
def tree(real_zookeeper: RealZooKeeper, zookeeper: Any) -> Tree:
    return Tree(real_zookeeper.connect, zookeeper)


def planned(cluster: Any, tree: Tree, **options: Any) -> dict[str, Any]:
    """The details of a plan that was not applied."""

    async def work(nodes: Nodes) -> dict[str, Any]:
        return dict((await repair(nodes, tree.at, MappingOptions(**options))).plan.details)

    return with_nodes(cluster, work)


async def checked(nodes: Nodes, tree: Tree) -> dict[str, Any]:
    return dict(check(await survey_mappings(nodes, tree.at), nodes, tree.at).details)


def applied(
    cluster: Any, tree: Tree, between: Callable[[], object] = lambda: None, **options: Any
) -> RepairResult:
    """A repair that is planned and applied; `between` the two, something happens."""
    options.setdefault("grace_s", 0.0)

    async def work(nodes: Nodes) -> RepairResult:
        mending = await repair(nodes, tree.at, MappingOptions(**options))
        await asyncio.to_thread(between)
        result = await do(mending)
        assert result.failure is None
        return result

    return with_nodes(cluster, work)


def undone(cluster: Any, tree: Tree) -> RepairResult:
    """What undoes the last repair, from the file that the repair wrote."""

    async def work(nodes: Nodes) -> RepairResult:
        return await do(await undo(nodes, records()[-1]))

    return with_nodes(cluster, work)


def state_folder() -> Path:
    from kelpie.store import default_folder

    return default_folder()


def paths(rows: Any) -> list[str]:
    return [row["path"].removeprefix(f"{ROOT}/") for row in rows]


def test_every_difference_is_found_and_mended(cluster: SyncCluster, tree: Tree) -> None:
    """Missing, wrong and leaked are mended; ambiguous, the healthy node and the foreign group stay."""
    before = {
        f"{HOST}-right": "billing",
        f"{HOST}-wrong": "other",
        f"{HOST}-shared": "audit",
        f"{HOST}-gone": "billing",
        f"{HOST}-assigns": "assign-only",
    }
    tree.write(before)
    clients = [("right", "billing"), ("wrong", "audit"), ("missing", "audit"), ("shared", "audit")]
    with consuming(cluster, *clients, ("shared", "other")):
        details = planned(cluster, tree)
        assert {kind: paths(details[kind]) for kind in ("missing", "wrong", "ambiguous", "leaked")} == {
            "missing": [f"{HOST}-missing"],
            "wrong": [f"{HOST}-wrong"],
            "ambiguous": [f"{HOST}-shared"],
            "leaked": [f"{HOST}-assigns", f"{HOST}-gone"],
        }
        assert details["correct"] == 1
        assert tree.mappings == before, "a plan changes nothing"
        result = applied(cluster, tree)
        assert result.reports[1:] == [
            "2 nodes written.",
            "1 node deleted.",
            "Left: 1 ambiguous and 1 leaked.",
        ]
        mended = {
            f"{HOST}-right": "billing",
            f"{HOST}-wrong": "audit",
            f"{HOST}-missing": "audit",
            f"{HOST}-shared": "audit",
            f"{HOST}-assigns": "assign-only",
        }
        assert tree.mappings == mended
        assert planned(cluster, tree)["changes"] == [], "a second repair has nothing to do"
        applied(cluster, tree, groups_without_members=True)
        assert tree.mappings == {name: group for name, group in mended.items() if group != "assign-only"}


def test_a_repair_is_undone_from_its_file(cluster: SyncCluster, tree: Tree) -> None:
    """Created, corrected and deleted nodes are back as they were; what changed since stays."""
    before = {f"{HOST}-wrong": "other", f"{HOST}-gone": "audit", f"{HOST}-later": "other"}
    tree.write(before)
    clients = [("wrong", "audit"), ("missing", "audit"), ("later", "audit"), ("o", "other")]
    with consuming(cluster, *clients):
        applied(cluster, tree)
        tree.set(f"{HOST}-later", "by a broker")
        result = undone(cluster, tree)
    assert result.reports[1:] == ["4 nodes put back."]
    assert tree.mappings == {**before, f"{HOST}-later": "by a broker"}


def test_only_what_is_still_as_planned_is_changed(cluster: SyncCluster, tree: Tree) -> None:
    """Between plan and apply, brokers write and delete. What was confirmed is the plan."""
    tree.write({f"{HOST}-wrong": "billing", f"{HOST}-refreshed": "billing", f"{HOST}-gone": "billing"})

    def brokers_write() -> None:
        tree.set(f"{HOST}-wrong", "audit")  # Corrected by a broker.
        tree.set(f"{HOST}-refreshed", "billing")  # The same value: somebody has just come.
        tree.client.create(f"{ROOT}/{HOST}-missing", b"audit")
        tree.client.create(f"{ROOT}/{HOST}-new-leak", b"billing")

    clients = [("wrong", "audit"), ("missing", "audit"), ("b", "billing"), ("lasting", "audit")]
    with consuming(cluster, *clients):
        result = applied(cluster, tree, brokers_write)
    assert result.reports[1:3] == [
        "2 nodes written. 2 nodes changed since the plan was made, and stay as they are.",
        "1 node deleted. 1 node changed since the plan was made, and stays as it is.",
    ]
    assert tree.mappings == {
        f"{HOST}-wrong": "audit",
        f"{HOST}-refreshed": "billing",
        f"{HOST}-missing": "audit",
        f"{HOST}-new-leak": "billing",
        f"{HOST}-b": "billing",
        f"{HOST}-lasting": "audit",
    }


def test_a_member_that_returns_within_the_grace_time_keeps_its_node(cluster: SyncCluster, tree: Tree) -> None:
    """It joins again without FindCoordinator: nothing else would write the node."""
    tree.write({f"{HOST}-back": "billing", f"{HOST}-stays": "billing"})
    with consuming(cluster, ("stays", "billing")) as consumers:

        def returns() -> None:
            consumers.join("back", "billing")
            consumers.settle()

        result = applied(cluster, tree, returns)
    assert result.reports[1] == (
        "0 nodes deleted. 1 node changed since the plan was made, and stays as it is."
    )
    assert tree.mappings == {f"{HOST}-back": "billing", f"{HOST}-stays": "billing"}


def test_the_grace_time_is_waited_for(cluster: SyncCluster, tree: Tree) -> None:
    """A plan says how long; the second look comes after it."""
    tree.write({f"{HOST}-gone": "billing"})

    async def work(nodes: Nodes) -> float:
        loop = asyncio.get_running_loop()
        mending = await repair(nodes, tree.at, MappingOptions(grace_s=0.5))
        begun = loop.time()
        assert "Wait 500 ms, ask again" in mending.plan.steps[1].does
        await do(mending)
        return loop.time() - begun

    with consuming(cluster, ("b", "billing")):
        tree.client.create(f"{ROOT}/{HOST}-b", b"billing")
        assert with_nodes(cluster, work) >= 0.4
    assert tree.mappings == {f"{HOST}-b": "billing"}


@pytest.mark.parametrize("name", ["", "a/b", "-", 'we"ird', "back\\slash", "ü", "x..y", " "])
def test_odd_client_ids_are_mapped_as_kop_maps_them(cluster: SyncCluster, tree: Tree, name: str) -> None:
    """The second check agrees with what the first has written."""
    group = f'g "{name}"'

    async def work(nodes: Nodes) -> tuple[RepairResult, dict[str, Any]]:
        settings = Settings.of(cluster.bootstrap_servers, client_id=name)
        async with await Nodes.open(settings) as odd:
            await Inhabitants(odd).join(group, "orders", 3)
            result = await do(await repair(nodes, tree.at, MappingOptions()))
            return result, await checked(nodes, tree)

    result, details = with_nodes(cluster, work)
    assert result.failure is None
    assert (details["correct"], details["differs"]) == (1, False)
    assert tree.client.get(f"{ROOT}/{HOST}-{name}")[0] == group.encode()


@pytest.mark.parametrize("name", ["new\nline", "a//b", "😀"])
def test_client_ids_that_zookeeper_refuses_are_said(cluster: SyncCluster, tree: Tree, name: str) -> None:
    """They have no node and never will: the client must be renamed."""
    tree.write({})

    async def work(nodes: Nodes) -> Repair:
        settings = Settings.of(cluster.bootstrap_servers, client_id=name)
        async with await Nodes.open(settings) as odd:
            await Inhabitants(odd).join("billing", "orders", 3)
            return await repair(nodes, tree.at, MappingOptions())

    mending = with_nodes(cluster, work)
    assert mending.plan.steps == ()
    assert mending.plan.details["unmappable"] == [{"group": "billing", "host": HOST, "client_id": name}]


def test_nodes_of_groups_that_were_not_asked_stay(cluster: SyncCluster, tree: Tree) -> None:
    """A coordinator that cannot be reached has groups with members that nobody lists."""
    tree.write({f"{HOST}-a": "somewhere", f"{HOST}-b": "billing", f"{HOST}-gone": "billing"})

    async def work(nodes: Nodes) -> Repair:
        coordinator = await Inhabitants(nodes).coordinator("billing")
        other = next(node for node in cluster.node_ids if node != coordinator)
        await asyncio.to_thread(cluster.wall_off, other)
        return await repair(nodes, tree.at, MappingOptions(grace_s=0.0, groups_without_members=True))

    with consuming(cluster, ("b", "billing")):
        mending = with_nodes(cluster, work)
    assert paths(mending.plan.details["leaked"]) == [f"{HOST}-gone"]
    assert paths(mending.plan.details["not_judged"]) == [f"{HOST}-a"]
    assert any("could not be asked" in warning for warning in mending.plan.warnings)


def test_nodes_of_groups_without_a_coordinator_stay(cluster: SyncCluster, tree: Tree) -> None:
    """No living broker lists them; that is no proof that they have no member."""
    dead = set(replicas_of(cluster, home(GROUP)))
    names = [f"group-{number}" for number in range(50)]
    living = next(name for name in names if dead != set(replicas_of(cluster, home(name))))
    tree.write({f"{HOST}-a": GROUP, f"{HOST}-b": living})
    for node in dead:
        cluster.stop(node)
    details = planned(cluster, tree, groups_without_members=True)
    assert details["not_asked"] == {}
    assert paths(details["not_judged"]) == [f"{HOST}-a"]
    assert paths(details["leaked"]) == [f"{HOST}-b"]


def test_a_tree_that_does_not_exist_is_explained_and_can_be_written(cluster: SyncCluster, tree: Tree) -> None:
    """KoP's root is a container: ZooKeeper removes it with the last node, so a lost tree looks like none."""
    with consuming(cluster, ("a", "billing")):
        result = applied(cluster, tree)
    assert "kopEnableGroupLevelConsumerMetrics" in " ".join(result.plan.seen)
    assert tree.mappings == {f"{HOST}-a": "billing"}


def test_a_zookeeper_that_dies_before_the_repair_is_applied_is_said(
    cluster: SyncCluster, tree: Tree, real_zookeeper: RealZooKeeper
) -> None:
    """The plan stands, nothing was changed, and no wait is without a limit."""

    async def work(nodes: Nodes) -> RepairResult:
        mending = await repair(nodes, MappingTree(tree.hosts, limit_s=1.0), MappingOptions())
        real_zookeeper.pause("zookeeper")
        try:
            return await do(mending)
        finally:
            real_zookeeper.resume("zookeeper")

    with consuming(cluster, ("a", "billing")):
        result = with_nodes(cluster, work)
    assert result.failure == f"ZooKeeper at {tree.hosts} did not answer within 1 s."
    assert len(result.done) == 1, "only the file was written"


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("/10.0.0.7", "10.0.0.7-app"),
        ("/10.0.0.7:52114", "10.0.0.7-app"),
        ("/0:0:0:0:0:0:0:1:52114", "0-app"),
        ("/[0:0:0:0:0:0:0:1]:52114", "[0-app"),
        ("", "-app"),
    ],
)
def test_hosts_are_cut_where_kop_cuts_them(host: str, name: str) -> None:
    """The node is named after the text that DescribeGroups has: with a port, on Java 14 with brackets."""
    state = GroupState("billing", "Stable", members=(Member("m", "app", host),))
    (member,) = mapped_members([state])
    assert mapping_path(member.client) == f"{ROOT}/{name}"


def test_members_are_asked_for_in_few_requests(cluster: SyncCluster, tree: Tree) -> None:
    """As many as there are brokers, not as many as there are groups or members."""
    clients = [(f"client-{number}", f"group-{number}") for number in range(12)]

    async def work(nodes: Nodes) -> tuple[dict[str, int], dict[str, Any]]:
        before = dict(nodes.counters.by_api)
        details = await checked(nodes, tree)
        asked = {name: count - before.get(name, 0) for name, count in nodes.counters.by_api.items()}
        return asked, details

    with consuming(cluster, *clients):
        asked, details = with_nodes(cluster, work)
    assert details["members"] == len(details["missing"]) == 12
    assert not any("FindCoordinator" in name for name, count in asked.items() if count)
    assert sum(asked.values()) <= 5 * len(cluster.node_ids)


# The command


class Command:
    """Runs `kelpie mappings`, and keeps what it prints."""

    def __init__(self, cluster: Any, tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
        self._options = ["--zookeeper", tree.hosts, "-b", cluster.bootstrap_servers, "--timeout", "5"]
        self._capsys = capsys
        self.out = self.err = ""

    def run(self, action: str, *words: str) -> int:
        status = main(["mappings", action, *self._options, *words])
        self.out, self.err = self._capsys.readouterr()
        if "--json" not in words:
            lines = [line.removesuffix("\\") for line in (self.out + self.err).splitlines()]
            assert [line for line in lines if len(line) > 80 and len(line.split()) > 1] == []
        return status


@pytest.fixture
def command(
    cluster: SyncCluster, tree: Tree, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.setenv("COLUMNS", "80")  # As on a terminal of that width.
    return Command(cluster, tree, capsys)


def test_check_prints_and_exits_by_what_it_sees(cluster: SyncCluster, tree: Tree, command: Command) -> None:
    """0: they agree. 1: they differ. The plan of the repair is one command away."""
    tree.write({f"{HOST}-a": "billing"})
    with consuming(cluster, ("a", "billing")):
        assert command.run("check") == 0
        assert command.out.startswith("Mappings and members agree.\n")
        tree.client.delete(f"{ROOT}/{HOST}-a")
        assert command.run("check") == 1
        assert "Missing" in command.out
        assert "kelpie mappings repair --zookeeper" in command.out
        assert command.run("check", "--json") == 1
        assert paths(documents.checked("mappings-check", command.out)["missing"]) == [f"{HOST}-a"]
        assert command.run("repair", "--json") == 0
        assert documents.checked("plan", command.out)["applicable"]
        assert command.run("repair") == 0
        assert command.out.endswith("Nothing was changed. To do it, run the same command with --apply.\n")
        assert tree.mappings == {}
        assert command.run("repair", "--apply") == 0
        assert command.out.endswith("Done.\n")
        assert command.run("check") == 0
        assert main(["undo", records()[-1].id, "--apply"]) == 0
        assert tree.mappings == {}


def test_every_kind_of_difference_fits_the_terminal(
    cluster: SyncCluster, tree: Tree, command: Command
) -> None:
    """80 columns, also with long names, and a word on each kind."""
    long = "a-group-with-a-rather-long-name-as-teams-choose-them"
    tree.write({f"{HOST}-shared": "billing", f"{HOST}-{long}": "billing", f"{HOST}-gone": long})
    clients = [("shared", "billing"), ("shared", long), (long, long), ("a//b", long)]
    with consuming(cluster, *clients, ("no-node", "billing")):
        assert command.run("check") == 1
        heads = [line.partition(":")[0] for line in command.out.splitlines() if line[:1].isupper()]
        assert heads[1:6] == ["Missing", "Wrong", "Ambiguous", "Leaked", "Unmappable"]
        assert command.run("repair") == 0
        assert "Give each group its own client.id" in command.out


def test_check_dumps_the_tree_for_the_doctor(tree: Tree, command: Command, tmp_path: Path) -> None:
    """One node a line, whatever bytes it holds."""
    file = tmp_path / "mappings.txt"
    assert command.run("check", "--dump", str(file)) == 0
    assert file.read_text() == f"{ROOT} does not exist\n"
    tree.write({f"{HOST}-ü": 'new\n"line'})
    assert command.run("check", "--dump", str(file)) == 1
    assert file.read_text() == (f"{ROOT}\tvalue=b''\n{ROOT}/{HOST}-ü\tvalue=b'new\\n\"line'\tversion=0\n")


def test_hostile_names_do_not_drive_the_terminal(cluster: SyncCluster, tree: Tree, command: Command) -> None:
    """A node's value is anybody's text."""
    tree.write({f"{HOST}-x": "\x1b[2Jevil\ngroup", f"{HOST}-y": "long " * 60})
    assert command.run("check") == 1
    assert "\x1b" not in command.out
    assert "evil" in command.out


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (
            ["check", "--zookeeper", "127.0.0.1:1", "--zookeeper-timeout", "0.5"],
            3,
            "did not answer within 0.5 s",
        ),
        (["check", "--zookeeper", "no port:x"], 3, "is no address of ZooKeeper"),
    ],
)
def test_mistakes_get_one_clear_sentence(
    command: Command, words: list[str], status: int, complaint: str
) -> None:
    """No traceback."""
    assert command.run(*words) == status
    assert complaint in " ".join(command.err.split())


def test_options_that_make_no_sense_are_refused(command: Command) -> None:
    """Before anything is asked."""
    for words in (["check", "--root", "/"], ["repair", "--grace", "soon"]):
        with pytest.raises(SystemExit) as exit_:
            command.run(*words)
        assert exit_.value.code == 64


def test_members_of_real_kafka_are_compared_alike(real_kafka: Callable[..., RealCluster], tree: Tree) -> None:
    """Real Kafka writes hosts as KoP does: with a slash before them."""
    cluster = real_kafka()
    cluster.tool("kafka-topics", "--create", "--if-not-exists", "--topic", "orders")
    with consuming(cluster, ("mapped-app", "mapped-group")):
        applied(cluster, tree)
        assert tree.mappings[f"{HOST}-mapped-app"] == "mapped-group"


# The record that undoes


def test_the_record_keeps_every_byte() -> None:
    """Values need not be UTF-8, and names hold anything."""
    changes = (
        NodeChange(f"{ROOT}/a", None, 'ü\n"'.encode()),
        NodeChange(f"{ROOT}/b", b"\xff\xfe", None),
        NodeChange(f"{ROOT}/ü/c", b"", b"g"),
    )
    change = MappingsChange("zk:2181", ROOT, changes)
    ChangeRecord("c", "b:1", "mappings repair", ROOT, 0, "", change).write()
    assert records()[0].change == change
    requests: list[Put | Create | Delete] = [
        Create(1, f"{ROOT}/a", b"x"),
        Put(1, f"{ROOT}/b", b"y"),
        Delete(1, f"{ROOT}/c"),
    ]
    assert [(change.before, change.after) for change in changes_of(requests, {})] == [
        (None, b"x"), (None, b"y"), (None, None)
    ]  # fmt: skip
