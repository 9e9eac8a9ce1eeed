"""`kelpie groups` as a person, and as a program, uses it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kelpie.cli import main
from kelpie.cli.text_table import fitting
from kelpie.client import SyncAdmin
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition

Groups = Callable[..., tuple[int, str, str]]
HOSTILE = "billing-\x1b[2J"


@pytest.fixture
def cluster() -> Iterator[SyncCluster]:
    """Three groups, 1, 5 and 10 records behind."""
    with SyncCluster(3, replication=3) as cluster:
        cluster.create_topic("orders", partitions=2)
        _produce(cluster, 10)
        with SyncAdmin(cluster.bootstrap_servers, patience_s=30) as admin:
            for group, offset in (("billing-1", 9), ("billing-2", 5), (HOSTILE, 0)):
                admin.commit(group, {TopicPartition("orders", 0): offset})
        yield cluster


def _produce(cluster: SyncCluster, count: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(count):
        producer.produce("orders", str(number).encode(), partition=0)
    assert producer.flush(30) == 0


@pytest.fixture
def groups(
    cluster: SyncCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Groups:
    monkeypatch.delenv("COLUMNS", raising=False)  # A file gets all columns.

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(["groups", *arguments, "-b", cluster.bootstrap_servers, "--store", str(tmp_path)])
        return status, *capsys.readouterr()

    return run


def _lags(document: str) -> dict[str, int]:
    rows: list[dict[str, Any]] = json.loads(document)["groups"]
    return {row["group"]: row["lag"] for row in rows}


def test_all_groups_are_shown_a_line_each(groups: Groups) -> None:
    """Healthy ones too; names of others are shown and never obeyed."""
    status, text, _ = groups("--sort", "lag")
    assert status == 0
    head, *rows = text.splitlines()
    assert head.split()[:4] == ["GROUP", "TYPE", "STATE", "#MEMBERS"]
    assert [row.split()[0] for row in rows] == ["billing-\\x1b[2J", "billing-2", "billing-1"]
    assert [row.split()[2:4] for row in rows] == [["Empty", "0"]] * 3
    assert "\x1b" not in text


def test_groups_are_chosen_and_sorted(groups: Groups) -> None:
    """By pattern, by lag, by severity."""
    assert _lags(groups("--json", "--sort", "name")[1]) == {"billing-1": 1, "billing-2": 5, HOSTILE: 10}
    assert list(_lags(groups("--json", "billing-?", "--exclude", "*-2")[1])) == ["billing-1"]
    assert list(_lags(groups("--json", "--severity", "critical")[1])) == []
    assert HOSTILE in _lags(groups("--json", "--only-with-lag")[1])


def test_a_group_by_name_is_shown_by_partition(groups: Groups) -> None:
    """With the columns of Kafka's own tool."""
    status, text, _ = groups("billing-2")
    assert status == 0
    headline, *_, head, row = text.splitlines()
    assert headline.startswith("billing-2: Empty, classic, 0 members, coordinator broker ")
    assert head.split()[:6] == ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    assert row.split()[:6] == ["billing-2", "orders", "0", "5", "10", "5"]
    (document,) = json.loads(groups("billing-2", "--json")[1])["groups"]
    assert [(row["offset"], row["lag"]) for row in document["partitions"]] == [(5, 5)]


def test_a_group_that_nobody_knows_is_status_3(groups: Groups) -> None:
    """It is told, and not shown as a group with nothing to read."""
    status, text, error = groups("nobody")
    assert (status, text.strip()) == (3, "")
    assert "knows the group nobody" in error
    assert json.loads(groups("nobody", "--json")[1])["unknown_groups"] == ["nobody"]


def test_a_cluster_that_does_not_answer_is_status_3(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Nothing to see is not "no groups"."""
    status = main(["groups", "-b", "127.0.0.1:1", "--store", str(tmp_path), "--timeout", "1"])
    assert status == 3
    assert "Nothing answered" in capsys.readouterr().err


def test_a_table_leaves_columns_out_until_it_fits() -> None:
    """Only those that can be spared, and it says which; a file gets all."""
    head, rows = ("NAME", "A", "B"), [("x" * 10, "1" * 10, "2" * 10)]
    assert fitting(head, rows, ["B", "A"], None)[1] == []
    assert fitting(head, rows, ["B", "A"], 34)[1] == []
    table, left_out = fitting(head, rows, ["B", "A"], 33)
    assert left_out == ["B"]
    assert max(map(len, table.splitlines())) == 22
    assert fitting(head, rows, ["B"], 5)[1] == ["B"]
