"""Looking at a live cluster in the background, also when it dies or a look fails."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kelpie.client import SyncAdmin
from kelpie.client.settings import Settings
from kelpie.examination import Examination, Examined
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.web.watch import Watch
from tests.web.watching import client, looked


def test_a_broker_that_dies_is_seen_and_pages_go_on(wait_until: Callable[..., None]) -> None:
    with SyncCluster(1, offsets_partitions=4) as cluster:
        cluster.create_topic("orders", partitions=1)
        with SyncAdmin(cluster.bootstrap_servers, patience_s=30) as admin:
            admin.commit("billing", {TopicPartition("orders", 0): 0})
        settings = replace(Settings.of(cluster.bootstrap_servers), request_timeout_s=1, connect_timeout_s=1)
        with Watch("lab", Examination(settings), 0.05) as watch, client([watch]) as browser:
            looked(watch)
            with (
                cluster.observe(api="DescribeConfigs") as asked,
                cluster.observe(api="ListGroups") as looks,
            ):
                wait_until(lambda: len(looks.requests) > 2)
            assert len(asked.requests) < len(looks.requests), "not every look asks for them"
            assert [row["group"] for row in browser.get("/clusters/lab/groups.json").json()["groups"]] == [
                "billing"
            ]
            assert 'kelpie_cluster_answers{cluster="lab"} 1' in browser.get("/metrics").text
            cluster.kill(1)
            wait_until(lambda: 'kelpie_cluster_answers{cluster="lab"} 0' in browser.get("/metrics").text)
            page = browser.get("/clusters/lab/overview")
            assert page.status_code == 200
            assert "not one broker answered" in page.text


def test_a_look_that_fails_leaves_the_last_one_and_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wait_until: Callable[..., None]
) -> None:
    with SyncCluster(1, offsets_partitions=4) as cluster:
        with Watch("lab", Examination(Settings.of(cluster.bootstrap_servers)), 0.05) as watch:
            looked(watch)

            async def fail(_: Examination) -> Examined:
                raise ZeroDivisionError

            monkeypatch.setattr(Examination, "examine", fail)
            wait_until(lambda: watch.failures >= 2)
            assert watch.latest is not None
            with client([watch]) as browser:
                assert browser.get("/clusters/lab/overview").status_code == 200
                assert "kelpie_failed_looks" in browser.get("/metrics").text
        assert "ZeroDivisionError" in capsys.readouterr().err


def test_files_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []
    examine = Examination.examine

    async def counted(self: Examination) -> Examined:
        looks.append(1)
        return await examine(self)

    monkeypatch.setattr(Examination, "examine", counted)
    with Watch("files", Examination(), 0) as watch:
        looked(watch)
        watch._thread.run(lambda: watch._task)
    assert looks == [1]
