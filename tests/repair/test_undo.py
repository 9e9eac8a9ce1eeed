"""Records of changes, and taking them back."""

import json
import stat
from dataclasses import replace

import pytest

from kelpie.cli import main
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.repair.change_records import (
    ChangeRecord,
    NoWayBack,
    OffsetsChange,
    ReplicasChange,
    StoredOffset,
    records,
)
from kelpie.repair.plan import CannotRepair
from kelpie.repair.reset import reset
from kelpie.repair.reset_targets import ToEarliest, ToLatest
from kelpie.repair.undo import find, undo
from kelpie.repair.undo_files import undo_folder
from tests.repair.scene import GROUP, commit, committed, do, undone, with_nodes

ORDERS = TopicPartition("orders", 0)


def a_record(subject: str = GROUP, at: int = 1_700_000_000_000) -> ChangeRecord:
    change = OffsetsChange({ORDERS: None}, {ORDERS: StoredOffset(4, 2, "m")}, makes_group=True)
    return ChangeRecord("c-1", "kafka:9092", "rehome", subject, at, "Moves it.", change)


def reset_of(cluster: SyncCluster, target: ToEarliest | ToLatest, *topics: str) -> ChangeRecord:
    async def work(nodes):  # type: ignore[no-untyped-def]
        return await do(await reset(nodes, GROUP, target, topics))

    assert with_nodes(cluster, work).failure is None
    return records()[-1]


def test_names_that_look_alike_in_file_names_never_share_a_record() -> None:
    """pay/eu and pay:eu both become pay_eu; the hash in the name keeps them apart."""
    for name in ("pay/eu", "pay:eu", "pay_eu"):
        a_record(name).write()
    assert {record.subject for record in records()} == {"pay/eu", "pay:eu", "pay_eu"}


def test_a_record_is_never_overwritten_and_only_its_owner_reads_it() -> None:
    """Two runs in the same millisecond: the second must not take the first one's way back."""
    a_record().write()
    with pytest.raises(FileExistsError):
        a_record().write()
    assert stat.S_IMODE(a_record().file.stat().st_mode) == 0o600


def test_a_record_keeps_all_of_a_change() -> None:
    """Epoch and metadata too: Kafka Streams keeps its time in there."""
    replicas = ReplicasChange({3: (1, 2)}, {3: (1, 2, 3)}, "zk:2181")
    a_record().write()
    replace(a_record(at=1), change=replicas).write()
    replace(a_record(at=2), change=NoWayBack("Lost for good.")).write()
    assert [record.change for record in records()] == [
        replicas,
        NoWayBack("Lost for good."),
        a_record().change,
    ]
    document = json.loads(a_record().file.read_text())
    assert (document["cluster"], document["subject"]) == ("c-1", GROUP)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "kelpie change 1"}', '{"format": 1}'])
def test_a_torn_record_is_no_record(text: str) -> None:
    """A file that cannot be read proves nothing, and does not stop anything either."""
    a_record().write()
    a_record().file.write_text(text)
    assert records() == []


@pytest.mark.parametrize(
    ("was", "becomes"),
    [('"billing"', '"another"'), ("     4,", "     5,"), ("true", "false"), ("c-1", "c-2")],
)
def test_a_record_that_somebody_changed_is_no_record(was: str, becomes: str) -> None:
    """The offsets of one group must not be written into another."""
    record = a_record()
    record.write()
    text = record.file.read_text()
    assert was in text
    record.file.write_text(text.replace(was, becomes))
    assert records() == []


def test_a_record_of_the_first_release_is_one() -> None:
    """It had no sum."""
    record = a_record()
    record.write()
    document = json.loads(record.file.read_text())
    del document["sum"]
    record.file.write_text(json.dumps(document))
    assert records() == [record]


def test_a_change_is_found_by_the_first_letters_of_its_id() -> None:
    """And by nothing that is not clear."""
    known = [a_record(), a_record("other")]
    assert find(known, known[0].id[:6]) is known[0]
    with pytest.raises(CannotRepair, match="No record on this machine"):
        find(known, "")
    with pytest.raises(CannotRepair, match="begins several ids"):
        find([known[0], known[0]], known[0].id)


def test_a_change_of_another_cluster_is_refused(cluster: SyncCluster) -> None:
    """A group of the same name may live there."""
    with pytest.raises(CannotRepair, match="done in the cluster c-1"):
        with_nodes(cluster, lambda nodes: undo(nodes, a_record()))


def test_what_changed_since_is_told_and_nothing_is_done(cluster: SyncCluster) -> None:
    """Half of the group's partitions went on: an undo of the rest would tear them apart."""
    record = reset_of(cluster, ToEarliest())
    commit(cluster, GROUP, {0: 3})
    result = undone(cluster, record)
    assert not result.plan.applicable
    assert "orders-0 is at 3, and reset left it at 0" in result.plan.obstacles[0]


def test_a_partition_that_got_its_first_offset_has_none_again(cluster: SyncCluster) -> None:
    """Others of the group stay, so the group does too."""
    record = reset_of(cluster, ToLatest(), "orders:1,2")
    assert committed(cluster, GROUP) == {0: 4, 1: 10, 2: 10}
    assert undone(cluster, record).failure is None
    assert committed(cluster, GROUP) == {0: 4, 1: 7}
    assert undone(cluster, record).plan.steps == ()
    assert undone(cluster, records()[-1]).failure is None, "the undo is undone"
    assert committed(cluster, GROUP) == {0: 4, 1: 10, 2: 10}


def test_the_list_says_what_was_undone_by_what(
    cluster: SyncCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """By cluster, with what can still be taken back."""
    assert main(["undo", "--list"]) == 0
    assert str(undo_folder()) in capsys.readouterr().out
    first = reset_of(cluster, ToEarliest())
    undone(cluster, first)
    second = reset_of(cluster, ToLatest())
    a_record("elsewhere").write()
    assert main(["undo", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    state = {line.split()[0]: line for line in lines if line.startswith(tuple(it.id for it in records()))}
    assert "undone by" in state[first.id]
    assert state[second.id].endswith("not undone")
    assert "Cluster c-1 at kafka:9092" in lines
    commit(cluster, GROUP, {1: 5})
    assert main(["undo", "--list", "-b", cluster.bootstrap_servers]) == 0
    told = capsys.readouterr().out
    assert "elsewhere" not in told
    assert "cannot be undone\n" in told
    assert main(["undo", "--list", "--json", "-b", cluster.bootstrap_servers]) == 0
    states = {row["id"]: row["state"] for row in json.loads(capsys.readouterr().out)}
    assert "orders-1 is at 5, and reset left it at 10" in states[second.id]
