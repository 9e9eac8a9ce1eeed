"""KLP405: nodes of consumers that are gone."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.mapping_leaked import judge
from tests.doctor.building import a_case, a_cluster, a_member
from tests.doctor.rules.kop import a_group, a_listing, a_scrape, findings, kop, missing, unknown

NODE = {"10.0.0.7-app-1": "billing"}
APP = a_member("app-1-uuid", 0, client_id="app-1", host="/10.0.0.7")
OWN, OTHERS = ("orders", 0, "billing"), ("orders", 0, "audit")


def test_a_node_of_a_group_without_members_is_a_notice() -> None:
    """It waits for whoever comes with this host and client id."""
    cluster = kop(a_listing(NODE))
    (finding,) = findings(judge(cluster, [a_group(cluster, "billing")]))
    assert (finding.group, finding.severity) == ("billing", Severity.NOTICE)
    assert finding.summary == (
        "Group billing may be counted too high: the node of app-1 on 10.0.0.7 names it, and it has no member."
    )
    assert finding.evidence[1].text == "billing: Empty, 0 members"


def test_a_node_of_a_member_that_left_while_others_stay() -> None:
    """Its group lives; this client does not."""
    cluster = kop(a_listing(NODE | {"10.0.0.7-app-2": "billing"}))
    other = a_member("app-2-uuid", 0, client_id="app-2", host="/10.0.0.7")
    (finding,) = findings(judge(cluster, [a_group(cluster, "billing", other)]))
    assert finding.summary.endswith("it has no member with this host and client id.")


def test_traffic_that_is_counted_to_a_group_without_members_is_a_warning() -> None:
    """Somebody else reads, and the dead group has the numbers."""
    cluster = kop(a_listing(NODE), a_scrape({OWN: 5}), a_scrape({OWN: 80}))
    (finding,) = findings(judge(cluster, [a_group(cluster, "billing")]))
    assert finding.severity is Severity.WARNING
    assert finding.summary.endswith("no member; 75 messages were counted to it all the same.")
    assert "only calls assign()" in finding.why


def test_a_node_of_a_member_is_well() -> None:
    """Near miss."""
    cluster = kop(a_listing(NODE))
    assert judge(cluster, [a_group(cluster, "billing", APP)]) is ABSENT


def test_a_node_that_another_group_uses_is_wrong_and_not_leaked() -> None:
    """Near miss: KLP403's case."""
    cluster = kop(a_listing(NODE))
    assert judge(cluster, [a_group(cluster, "billing"), a_group(cluster, "audit", APP)]) is ABSENT


def test_a_node_that_the_last_listing_has_not_is_gone() -> None:
    """Near miss: it went when its consumer was closed."""
    cluster = kop(a_listing(NODE), a_listing({}))
    assert judge(cluster, [a_group(cluster, "billing")]) is ABSENT


def test_nodes_that_outlive_a_killed_broker_are_probable() -> None:
    """Without members: its series ended with the restart, others have read its partition since."""
    cluster = kop(a_listing(NODE), a_listing(NODE), a_scrape({OWN: 5, OTHERS: 5}), a_scrape({OTHERS: 3}))
    (finding,) = findings(judge(cluster, unknown(cluster, "billing", "audit")))
    assert (finding.group, finding.severity) == ("billing", Severity.NOTICE)
    assert "has read nothing since the broker was started again" in finding.summary


def test_a_group_that_reads_again_after_the_restart_is_not_meant() -> None:
    """Near miss: a rolling restart, after which everybody is back."""
    cluster = kop(
        a_listing(NODE), a_listing(NODE), a_scrape({OWN: 5, OTHERS: 5}), a_scrape({OWN: 1, OTHERS: 3})
    )
    assert missing(judge(cluster, unknown(cluster, "billing", "audit")))


def test_a_group_whose_partitions_nobody_reads_may_have_nothing_to_read() -> None:
    """Near miss: a quiet topic after a restart."""
    quiet = ("quiet", 0, "billing")
    cluster = kop(a_listing(NODE), a_listing(NODE), a_scrape({quiet: 5, OTHERS: 5}), a_scrape({OTHERS: 3}))
    assert missing(judge(cluster, unknown(cluster, "billing", "audit")))


def test_without_members_nobody_can_say() -> None:
    """A consumer of a quiet topic has a node and no traffic, and is well."""
    cluster = kop(a_listing(NODE))
    assert missing(judge(cluster, unknown(cluster, "billing")))
    assert missing(judge(kop(a_scrape({OWN: 1})), []))
    assert judge(a_cluster(), [a_case()]) is ABSENT
