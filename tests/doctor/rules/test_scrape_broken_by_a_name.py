"""KLP406: lines that make Prometheus drop a scrape."""

import pytest

from kelpie.doctor.finding import ABSENT, Severity, Undetermined
from kelpie.doctor.rules.scrape_broken_by_a_name import judge
from kelpie.evidence.kop_scrapes import read_kop_scrape
from kelpie.observations import Observations
from tests.doctor.building import a_case, a_cluster
from tests.doctor.rules.kop import a_listing, findings, kop


def a_scrape_of(group: str, name: str = "broker1.prom") -> Observations:
    """As KoP writes it: the name of the group as it is."""
    text = (
        "# TYPE kop_server_MESSAGE_OUT counter\n"
        f'kop_server_MESSAGE_OUT{{cluster="test",group="{group}",partition="0",topic="t"}} 7\n'
        f'kop_server_BYTES_OUT{{cluster="test",group="{group}",partition="0",topic="t"}} 700\n'
    )
    rows = read_kop_scrape(text.split("\n"), name)
    assert rows is not None
    return rows


@pytest.mark.parametrize(
    ("group", "sign"),
    [
        ('we"ird', "a quote"),
        ("back\\slash", "a backslash"),
        ("new\nline", "an end of line"),
        ('a"b\\c\nd', "a quote, a backslash and an end of line"),
        ('"', "a quote"),
        ("\n", "an end of line"),
    ],
)
def test_the_finding_names_the_line_and_the_group(group: str, sign: str) -> None:
    """Whatever is in the name: it is read as the group has it."""
    (finding,) = findings(judge(kop(a_scrape_of(group)), []))
    assert finding.severity is Severity.WARNING
    assert finding.group == group
    assert finding.summary == (
        f"Group {group!r} breaks the metrics of broker 1 by {sign} in its name: "
        "2 series of broker1.prom are not in the text format (first in line 2)."
    )
    assert finding.evidence[0].source == "broker1.prom:2"
    assert "all metrics of broker 1 are missing" in finding.why
    assert finding.check.endswith("/metrics/ | promtool check metrics")


def test_a_name_that_makes_labels_of_its_own_is_not_seen() -> None:
    """The line is in the format, and says something else. The page tells it."""
    assert judge(kop(a_scrape_of('",x="')), []) is ABSENT


@pytest.mark.parametrize("group", ["grün", "a/b", "", "a b", "{x}", "a=b,c", "'"])
def test_odd_names_that_the_format_can_hold_are_well(group: str) -> None:
    """Near misses."""
    assert judge(kop(a_scrape_of(group)), []) is ABSENT


def test_a_line_that_names_no_group_is_told_without_one() -> None:
    """A file that was cut off, perhaps: what is known is the line."""
    rows = read_kop_scrape(
        ['kop_server_MESSAGE_OUT{group="a",partition="0",topic="t"} 7', "kop_server_BYTES_OUT{gro"], "x.prom"
    )
    assert rows is not None
    (finding,) = findings(judge(kop(rows), []))
    assert finding.group is None
    assert finding.summary == "1 series of x.prom is not in the text format (first in line 2)."


def test_without_scrapes_there_is_nothing_to_break() -> None:
    """Plain Kafka, and a scrape in order."""
    assert judge(a_cluster(), [a_case()]) is ABSENT


def test_a_cluster_with_kop_and_without_a_scrape_is_undetermined() -> None:
    """The mapping tree shows that KoP counts by group. A cluster without either has nothing to do with it."""
    judgement = judge(kop(a_listing({"10.0.0.7-app-1": "billing"})), [])
    assert isinstance(judgement, Undetermined)
    assert judgement.missing == ("scrapes of the brokers' metrics",)
    assert judge(a_cluster(), []) is ABSENT
