"""What real KoP exported in each situation: the doctor says of each what its README says.

The files of one number are one situation. The archive has no times, and no members of groups: so the findings
also show how much can be said without them, and what a description of the members adds.
"""

import shutil
from functools import cache
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import Diagnosis, diagnose_all
from kelpie.doctor.finding import Finding, Severity
from kelpie.evidence import read_evidence
from tests.evidence import unpacked

KOP = "kop-3.2-scrapes"
HOSTILE = {'we"ird', "back\\slash", "new\nline"}


def files(*numbers: str) -> list[Path]:
    return sorted(file for number in numbers for file in unpacked(KOP).glob(f"{number}*"))


def examined(*paths: Path) -> Diagnosis:
    return diagnose_all(*build(read_evidence(paths)))


@cache
def diagnosed(*numbers: str) -> Diagnosis:
    return examined(*files(*numbers))


def about_traffic(diagnosis: Diagnosis, least: Severity = Severity.NOTICE) -> list[Finding]:
    return [each for each in diagnosis.findings if each.code[:4] == "KLP4" and each.severity >= least]


def brief(diagnosis: Diagnosis, least: Severity = Severity.NOTICE) -> set[tuple[str, str | None, str]]:
    return {(each.code, each.group, each.severity.name) for each in about_traffic(diagnosis, least)}


@pytest.mark.parametrize("number", ["01", "03"])
def test_where_all_labels_are_right_nothing_is_found(number: str) -> None:
    """01: one broker, a client id each. 03: coordinators on broker 1, data on broker 2."""
    assert brief(diagnosed(number)) == set()


def test_02_two_groups_with_the_default_client_id_may_share_a_node() -> None:
    """Both are counted right, so far: connections keep what they have read. The node names the second."""
    assert brief(diagnosed("02")) == {
        ("KLP404", "g-first", "NOTICE"),
        ("KLP404", "g-second", "NOTICE"),
    }
    assert "names g-second" in about_traffic(diagnosed("02"))[0].summary


def test_02_with_members_it_is_certain(tmp_path: Path) -> None:
    """What the files lack: who has which host and client id."""
    described = tmp_path / "members.txt"
    rows = [
        f"{group} rdkafka-{number} /127.0.0.1 rdkafka 4"
        for number, group in enumerate(("g-first", "g-second"))
    ]
    described.write_text("\nGROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS\n" + "\n".join(rows) + "\n")
    assert brief(examined(*files("02"), described)) == {
        ("KLP404", "g-first", "WARNING"),
        ("KLP404", "g-second", "WARNING"),
    }


def test_04_the_consumer_whose_idle_connection_closed_is_named() -> None:
    """Its partitions moved to broker 1, and broker 1 counts 4,451 messages to nobody."""
    assert brief(diagnosed("04")) == {
        ("KLP401", None, "WARNING"),
        ("KLP407", "j-idle2", "WARNING"),
    }
    unattributed, idle = about_traffic(diagnosed("04"))
    assert "4,451 messages of orders (partitions 0-3, on broker 1)" in unattributed.summary
    assert "4,451 messages of orders" in idle.summary
    assert idle.partitions == ("orders-0", "orders-1", "orders-2", "orders-3")


def test_04_before_the_move_nothing_is_lost() -> None:
    """The node is gone already, and both groups have their labels. Frozen series of others are no fault."""
    before = [file for file in files("04") if not file.name.startswith("04b")]
    assert brief(examined(*before)) == set()


def test_06_assign_is_counted_to_nobody_and_one_scrape_cannot_say_since_when() -> None:
    """The consumer without a group cannot be told from one that lost its group: no group is named."""
    assert brief(diagnosed("06")) == {("KLP401", None, "NOTICE")}
    orders, t6 = about_traffic(diagnosed("06"))
    assert (orders.cause, t6.cause) == ("orders", "t6")
    assert t6.evidence[-1].text == "1 group with a node and no traffic: g6-assign"


def test_07_the_three_names_that_break_the_scrape_are_named_with_their_lines() -> None:
    """Letters outside ASCII and slashes do no harm."""
    broken = [each for each in about_traffic(diagnosed("07")) if each.code == "KLP406"]
    assert {(each.group, each.severity) for each in broken} == {
        (group, Severity.WARNING) for group in HOSTILE
    }
    assert {each.evidence[0].source for each in broken} == {
        "07_odd_names.prom:3798",
        "07_odd_names.prom:3802",
        "07_odd_names.prom:3892",
    }
    assert brief(diagnosed("07"), Severity.WARNING) == {("KLP406", group, "WARNING") for group in HOSTILE}


def test_08_the_default_setting_is_no_fault() -> None:
    """kopEnableGroupLevelConsumerMetrics=false: no label, no nodes, and nothing that stays undecided."""
    assert brief(diagnosed("08")) == set()
    assert not [each for each in diagnosed("08").open if each.code[:4] == "KLP4"]


def test_09_none_of_24_consumers_has_lost_its_label() -> None:
    """What is wrong in its scrape is older: the names of 07, and the traffic of 06, which stays for ever."""
    assert brief(diagnosed("09")) == {
        ("KLP401", None, "NOTICE"),
        *(("KLP406", group, "WARNING") for group in HOSTILE),
    }
    assert not any((each.group or "").startswith("g9-") for each in about_traffic(diagnosed("09")))


def test_06_07_and_09_together_show_that_nothing_is_lost_any_more() -> None:
    """One broker, three scrapes, the same values without a group: no growth is no loss."""
    assert brief(diagnosed("06", "07", "09")) == {("KLP406", group, "WARNING") for group in HOSTILE}


def test_11_nodes_that_outlive_a_killed_broker_are_suspected() -> None:
    """g11-b and g11-c have not read since; what is counted to g11-a may be anybody's."""
    assert brief(diagnosed("11")) == {
        ("KLP405", "g11-b", "NOTICE"),
        ("KLP405", "g11-c", "NOTICE"),
    }
    assert (
        about_traffic(diagnosed("11"))[0]
        .evidence[-1]
        .text.endswith("150 messages were counted to g11-a since, whoever has read them")
    )


def test_11_with_a_list_of_groups_the_dead_group_is_found_to_have_the_numbers(tmp_path: Path) -> None:
    """The consumer had no group; its client id had been g11-a's."""
    described = tmp_path / "state.txt"
    rows = [f"{group} 127.0.0.1:9092 (0) range Empty 0" for group in ("g11-a", "g11-b", "g11-c")]
    head = "GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS\n"
    described.write_text("\n" + head + "\n".join(rows) + "\n")
    diagnosis = examined(*files("11"), described)
    assert brief(diagnosis) == {
        ("KLP405", "g11-a", "WARNING"),
        ("KLP405", "g11-b", "NOTICE"),
        ("KLP405", "g11-c", "NOTICE"),
    }
    assert "150 messages were counted to it all the same" in about_traffic(diagnosis)[0].summary


def test_12_the_quiet_consumer_lost_its_label_without_any_restart() -> None:
    """After nine minutes both nodes are gone. The busy one keeps its label until its partitions move."""
    assert brief(diagnosed("12")) == {
        ("KLP401", None, "WARNING"),
        ("KLP407", "g12-quiet", "WARNING"),
        ("KLP407", "g12-busy", "NOTICE"),
    }
    quiet = next(each for each in about_traffic(diagnosed("12")) if each.group == "g12-quiet")
    assert "100 messages of t12quiet were counted to no group" in quiet.summary


def test_the_command_says_it_and_prints_no_name_raw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name with an end of line in it must not break the page."""
    for file in files("07"):
        shutil.copy(file, tmp_path)
    assert main(["doctor", "--no-store", "--evidence", str(tmp_path)]) == 1
    page = capsys.readouterr().out
    assert "KLP406 scrape-broken-by-a-name" in page
    assert "new\nline" not in page
