"""/metrics, as Prometheus's own parser reads it."""

import re
from pathlib import Path

from kelpie.doctor.rules import rules
from kelpie.evidence import read_evidence
from kelpie.examination import Examination
from kelpie.observations import Committed, Listing, LogEnds, Observations
from kelpie.web.families import families_in
from kelpie.web.metrics import Families
from tests.doctor.building import NOW, a_broker, an_offsets_topic
from tests.evidence import unpacked
from tests.web.scraping import scraped
from tests.web.watching import pages

DOCS = Path(__file__).parents[2] / "docs"
HOSTILE = 'a"b\\c\nd{}'


def test_a_recorded_outage_in_numbers() -> None:
    evidence = read_evidence([unpacked("kafka-4.3.1-coordinator-outage")])
    with pages(Examination(evidence=evidence)) as browser:
        samples = scraped(browser)
    assert [(labels["broker"], value) for labels, value in samples["kelpie_broker_alive"]] == [
        ("1", 1.0),
        ("2", 0.0),
        ("3", 0.0),
    ]
    leaders = samples["kelpie_offsets_partition_leader"]
    assert len(leaders) == 50
    assert sum(value == -1 for _, value in leaders) == 17
    hit = [labels["group"] for labels, _ in samples["kelpie_group_finding"] if labels["code"] == "KLP101"]
    assert len(hit) == 8
    counts = {(labels["code"], labels["severity"]): value for labels, value in samples["kelpie_findings"]}
    assert len(counts) == 3 * len(rules()), "a rule that finds nothing has its zero"
    assert counts["KLP101", "critical"] == 8
    lags = {labels["group"]: value for labels, value in samples["kelpie_group_lag"]}
    parts = samples["kelpie_group_partition_lag"]
    assert sum(value for labels, value in parts if labels["group"] == "checkout-53") == lags["checkout-53"]


def test_names_of_others_are_escaped_and_what_is_unknown_has_no_sample() -> None:
    rows = Observations(
        brokers=[a_broker(node) for node in (1, 2, 3)],
        partitions=an_offsets_topic(),
        listings=[Listing(1, (HOSTILE, "dark"), at=NOW, source="broker 1")],
        committed=[Committed(HOSTILE, HOSTILE, 0, 5, at=NOW, source="broker 1")],
        ends=[LogEnds(HOSTILE, 0, 0, 12, at=NOW, source="broker 1")],
    )
    with pages(Examination(evidence=rows), name=HOSTILE) as browser:
        samples = scraped(browser)
    assert samples["kelpie_group_partition_lag"] == [
        ({"cluster": HOSTILE, "group": HOSTILE, "topic": HOSTILE, "partition": "0"}, 7.0)
    ]
    assert [labels["group"] for labels, _ in samples["kelpie_group_lag"]] == [HOSTILE]


def test_the_documentation_lists_every_family() -> None:
    listed = re.findall(r"^\| `(kelpie_\w+)`", (DOCS / "metrics.md").read_text(), re.M)
    assert listed == [family.name for family in families_in(Families)]
