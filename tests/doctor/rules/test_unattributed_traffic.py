"""KLP401: messages that are counted to no group."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.unattributed_traffic import judge
from tests.doctor.building import MINUTE, NOW, a_case, a_cluster, a_member
from tests.doctor.rules.kop import a_group, a_listing, a_scrape, findings, kop, missing, unknown

OWN = ("orders", 0, "billing")
LOST = ("orders", 0, "")
DROPPED = ("orders", 0, None)
"""As Prometheus gives it: it drops empty labels."""


def test_a_series_without_group_that_grows_is_a_warning_with_the_numbers() -> None:
    """Two scrapes of one broker: what came in between is counted to nobody."""
    cluster = kop(a_scrape({OWN: 10, LOST: 5}), a_scrape({OWN: 10, LOST: 12}))
    (finding,) = findings(judge(cluster, []))
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "7 messages of orders (partition 0, on broker 1) were read between two scrapes and counted to "
        "no group."
    )
    assert (finding.group, finding.partitions, finding.cause) == (None, ("orders-0",), "orders")
    assert 'MESSAGE_OUT group="", partition 0 of orders: 12, and 5 in ' in finding.evidence[0].text
    assert finding.remedies[0].command.startswith("kelpie mappings check --zookeeper ")
    assert finding.check.endswith("""/metrics/ | grep -F 'group=""'""")


def test_a_new_series_has_grown_from_nothing() -> None:
    """After a move, the new broker had no series at all before."""
    cluster = kop(a_scrape({}), a_scrape({LOST: 844}), a_scrape({OWN: 1}, broker="broker 2"))
    (finding,) = findings(judge(cluster, []))
    assert "844 messages" in finding.summary


def test_one_group_that_holds_the_partition_is_named() -> None:
    """Members tell who reads there. Topics in labels may have tenant and namespace."""
    long = "persistent://public/default/orders"
    cluster = kop(a_scrape({(long, 0, ""): 1}), a_scrape({(long, 0, ""): 3}))
    cases = [a_group(cluster, "billing", a_member("m", 0)), a_group(cluster, "audit", a_member("n", 1))]
    (finding,) = findings(judge(cluster, cases))
    assert finding.group == "billing"
    assert finding.summary.startswith("Group billing is probably counted too low: ")
    assert finding.summary.endswith("counted to no group, and no other group has this partition.")


def test_a_group_that_is_counted_under_its_own_name_is_not_suspected() -> None:
    """Two groups hold the partition, and one of them has its label."""
    cluster = kop(a_scrape({OWN: 1, LOST: 1}), a_scrape({OWN: 3, LOST: 3}))
    cases = [a_group(cluster, name, a_member("m", 0)) for name in ("billing", "audit")]
    assert [finding.group for finding in findings(judge(cluster, cases))] == ["audit"]


def test_where_two_groups_can_be_meant_none_is_named() -> None:
    """Nothing is guessed; the evidence has both."""
    cluster = kop(a_scrape({LOST: 1}), a_scrape({LOST: 3}))
    cases = [a_group(cluster, name, a_member("m", 0)) for name in ("billing", "audit")]
    (finding,) = findings(judge(cluster, cases))
    assert finding.group is None
    assert finding.evidence[-1].text == "groups that have these partitions assigned: audit and billing"


def test_a_series_that_stays_as_it_is_is_no_loss() -> None:
    """Near miss: after a repair, counters do not end. They only stop growing."""
    cluster = kop(a_scrape({OWN: 10, LOST: 5}), a_scrape({OWN: 99, LOST: 5}))
    assert judge(cluster, []) is ABSENT


def test_the_old_brokers_series_after_a_move_are_no_loss() -> None:
    """Near miss: the partition is on broker 2 now, with its label; broker 1 keeps what it counted."""
    cluster = kop(
        a_scrape({OWN: 10, LOST: 5}),
        a_scrape({}, broker="broker 2"),
        a_scrape({OWN: 10, LOST: 5}),
        a_scrape({OWN: 7}, broker="broker 2"),
    )
    assert judge(cluster, []) is ABSENT


def test_one_scrape_alone_is_a_notice_that_says_how_little_it_tells() -> None:
    """It may be old."""
    (finding,) = findings(judge(kop(a_scrape({OWN: 10, LOST: 5})), []))
    assert finding.severity is Severity.NOTICE
    assert "at some time since the broker was started" in finding.summary
    assert "One scrape does not tell whether it still happens" in finding.why


def test_after_a_restart_the_later_scrape_stands_alone() -> None:
    """A counter that has become smaller began again: its value is no growth."""
    (finding,) = findings(judge(kop(a_scrape({OWN: 10, LOST: 50}), a_scrape({OWN: 1, LOST: 3})), []))
    assert finding.severity is Severity.NOTICE
    assert finding.summary.startswith("3 messages of orders (partition 0, on broker 1)")
    assert finding.summary.endswith("since the broker was started again.")


def test_what_has_ended_is_told_as_over() -> None:
    """With times: it grew, and then no more."""
    cluster = kop(
        *(a_scrape({OWN: 1, LOST: lost}, at=NOW + number * MINUTE) for number, lost in enumerate((0, 5, 5)))
    )
    (finding,) = findings(judge(cluster, []))
    assert (finding.severity, finding.until) == (Severity.NOTICE, NOW + MINUTE)


def test_a_missing_label_beside_others_means_the_same_as_an_empty_one() -> None:
    """Prometheus drops empty labels when it takes them in."""
    cluster = kop(a_scrape({OWN: 1, DROPPED: 1}), a_scrape({OWN: 1, DROPPED: 4}))
    assert "3 messages" in findings(judge(cluster, []))[0].summary


def test_a_broker_that_does_not_count_groups_is_no_fault() -> None:
    """Near miss: kopEnableGroupLevelConsumerMetrics is false by default. No label, no nodes."""
    assert judge(kop(a_scrape({DROPPED: 1}), a_scrape({DROPPED: 9})), []) is ABSENT
    other = a_scrape({OWN: 1, LOST: 0}, broker="broker 2")
    assert judge(kop(a_scrape({DROPPED: 1}), a_scrape({DROPPED: 9}), other), []) is ABSENT


def test_without_labels_but_with_nodes_nobody_can_say() -> None:
    """Either the setting was changed, or every label was empty and dropped on the way."""
    cluster = kop(a_scrape({DROPPED: 1}), a_scrape({DROPPED: 9}), a_listing({"10.0.0.7-app-1": "billing"}))
    assert "kopEnableGroupLevelConsumerMetrics" in missing(judge(cluster, []))[0]


def test_without_a_scrape_nobody_can_say() -> None:
    """The tree alone does not tell what was counted."""
    assert missing(judge(kop(a_listing({"10.0.0.7-app-1": "billing"})), []))


def test_a_cluster_without_kop_has_nothing_to_lose() -> None:
    """Near miss: plain Kafka counts no traffic by group."""
    assert judge(a_cluster(), [a_case()]) is ABSENT


def test_scrapes_of_brokers_without_a_name_are_compared_only_if_they_fit() -> None:
    """The second may be another broker's: what it has is no growth of the first."""
    cluster = kop(a_scrape({OWN: 5}, broker=""), a_scrape({("other", 0, ""): 7}, broker=""))
    (finding,) = findings(judge(cluster, unknown(cluster, "billing")))
    assert finding.severity is Severity.NOTICE
