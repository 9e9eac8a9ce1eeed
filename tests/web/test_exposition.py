"""How many series there are, and how they are written."""

import gzip
import re

import pytest

from kelpie.examination import Examination
from kelpie.model.selection import Selection
from kelpie.web.exposition import EXPORTERS, Exposition, Limits
from kelpie.web.watch import Watch
from tests.web.looks import a_healthy_cluster
from tests.web.scraping import Samples, scraped
from tests.web.watching import client, looked, pages

GROUPS = ("audit", "billing-1", "billing-2")


def _scraped_with(limits: Limits, exporter: str = "kelpie") -> Samples:
    examination = Examination(evidence=a_healthy_cluster(*GROUPS))
    with pages(examination, exporters=[exporter], limits=limits) as browser:
        return scraped(browser)


def _groups(samples: Samples, metric: str) -> list[str]:
    return [labels["group"] for labels, _ in samples[metric]]


def test_groups_can_be_chosen_and_those_left_out_are_counted() -> None:
    samples = _scraped_with(Limits(Selection(["billing-*"])))
    assert _groups(samples, "kelpie_group_lag") == ["billing-1", "billing-2"]
    assert samples["kelpie_metrics_left_out_groups"][0][1] == 1
    assert samples["kelpie_groups"][0][1] == 3, "what is about the cluster counts them all"


def test_by_topic_no_partition_has_series() -> None:
    samples = _scraped_with(Limits(by_partition=False))
    assert not [name for name in samples if name.startswith("kelpie_group_partition_")]
    assert [(labels["topic"], value) for labels, value in samples["kelpie_group_topic_lag"]] == [
        ("orders", 7)
    ] * 3


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_by_topic_every_exporter_has_fewer_series(exporter: str) -> None:
    by_topic = _scraped_with(Limits(by_partition=False), exporter)
    by_partition = _scraped_with(Limits(), exporter)
    assert by_topic.keys() < by_partition.keys()


def test_a_maximum_leaves_out_whole_groups_and_counts_them() -> None:
    """Half of a group's numbers would mislead."""
    whole = _scraped_with(Limits())
    of_one_group = sum(labels.get("group") == "audit" for samples in whole.values() for labels, _ in samples)
    samples = _scraped_with(Limits(most=of_one_group))
    assert _groups(samples, "kelpie_group_lag") == ["audit"]
    assert samples["kelpie_metrics_left_out_groups"][0][1] == 2


def test_groups_with_findings_are_left_out_last() -> None:
    rows = a_healthy_cluster(*GROUPS)
    rows.ends = [end._replace(earliest=9) if end.topic == "orders" else end for end in rows.ends]
    rows.committed = [row if row.group == "billing-2" else row._replace(offset=12) for row in rows.committed]
    with pages(Examination(evidence=rows), limits=Limits(most=1)) as browser:
        samples = scraped(browser)
    assert set(_groups(samples, "kelpie_group_finding")) == {"billing-2"}
    assert _groups(samples, "kelpie_group_lag") == ["billing-2"]


def test_the_compressed_text_is_the_text() -> None:
    """It is put together from kept bytes and new ones, as one stream: not every client reads two."""
    with Watch("main", Examination(evidence=a_healthy_cluster(*GROUPS)), 3600) as watch:
        looked(watch)
        exposition = Exposition([watch])
        for _ in range(2):
            text = gzip.decompress(exposition.gzipped()).decode()
            assert _without_age(text) == _without_age(exposition.text().decode())


def _without_age(text: str) -> str:
    return re.sub(r"(?m)^(kelpie_look_age_seconds\S*) .*$", r"\1", text)


def test_several_clusters_share_families() -> None:
    with (
        Watch("east", Examination(evidence=a_healthy_cluster("billing")), 3600) as east,
        Watch("west", Examination(evidence=a_healthy_cluster("audit")), 3600) as west,
    ):
        looked(east)
        looked(west)
        with client([east, west]) as browser:
            samples = scraped(browser)
    assert [(labels["cluster"], labels["group"]) for labels, _ in samples["kelpie_group_lag"]] == [
        ("east", "billing"),
        ("west", "audit"),
    ]


def test_before_the_first_look_there_is_only_what_is_known() -> None:
    watch = Watch("main", Examination(), 3600)
    with client([watch]) as browser:
        assert list(scraped(browser)) == ["kelpie_failed_looks"]
