"""Findings as rows."""

from kelpie.doctor.finding import Evidence, Finding, Remedy, Severity
from kelpie.pipeline.diagnosis.findings import finding_of, finding_row

FINDING = Finding(
    "KLP101",
    "offsets-partition-leaderless",
    Severity.CRITICAL,
    "billing",
    "Group billing has no coordinator.",
    "Nobody can join.",
    (Evidence("leader none", "broker 1", 1_800_000_000_000),),
    (Remedy("Start broker 2."),),
    "__consumer_offsets-43",
    (2,),
    ("__consumer_offsets-43",),
    ("app-1",),
    1_800_000_000_000,
    1_800_000_060_000,
    "kafka-topics.sh --bootstrap-server kafka-1:9092 --describe",
)


def test_a_finding_comes_back_from_its_row() -> None:
    """`kelpie doctor --tables` says what the live doctor says."""
    assert finding_of(finding_row(FINDING, "main")) == FINDING


def test_rows_of_an_earlier_release_have_no_command_to_check_with() -> None:
    """Tables outlive releases; a column that was not there is read as empty."""
    row = {name: value for name, value in finding_row(FINDING, "main").items() if name != "check"}
    assert finding_of(row).check == ""
