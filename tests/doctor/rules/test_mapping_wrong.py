"""KLP403: a node that names another group."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.mapping_wrong import judge
from tests.doctor.building import a_case, a_cluster, a_member
from tests.doctor.rules.kop import a_group, a_listing, a_scrape, findings, kop, missing, unknown

APP = a_member("app-1-uuid", 0, client_id="app-1", host="/10.0.0.7")
ELSEWHERE = a_member("other-uuid", 0, client_id="other", host="/10.0.0.9")
STALE = {"10.0.0.7-app-1": "old-billing"}


def test_a_node_that_names_a_group_without_such_a_member_is_wrong() -> None:
    """It was left behind by a consumer that had another group.id."""
    cluster = kop(a_listing(STALE))
    cases = [a_group(cluster, "billing", APP), a_group(cluster, "old-billing")]
    (finding,) = findings(judge(cluster, cases))
    assert (finding.group, finding.severity) == ("billing", Severity.WARNING)
    assert finding.summary == (
        "Group billing is counted too low: what a member reads is counted to group old-billing, because the "
        "node of app-1 on 10.0.0.7 names that group."
    )
    assert finding.evidence[0].text == "/client_group_id/10.0.0.7-app-1 = 'old-billing', version 2"
    assert finding.check == "zookeeper-shell.sh ZOOKEEPER:2181 get /client_group_id/10.0.0.7-app-1"


def test_members_of_the_other_group_elsewhere_do_not_help() -> None:
    """The group lives, and not at this address."""
    cluster = kop(a_listing(STALE))
    cases = [a_group(cluster, "billing", APP), a_group(cluster, "old-billing", ELSEWHERE)]
    assert [finding.group for finding in findings(judge(cluster, cases))] == ["billing"]


def test_the_right_group_is_well() -> None:
    """Near miss."""
    cluster = kop(a_listing({"10.0.0.7-app-1": "billing"}))
    assert judge(cluster, [a_group(cluster, "billing", APP)]) is ABSENT


def test_two_groups_at_one_address_are_ambiguous_and_not_wrong() -> None:
    """Near miss: the node names one of the two, which is KLP404's case."""
    cluster = kop(a_listing(STALE))
    cases = [a_group(cluster, "billing", APP), a_group(cluster, "old-billing", APP)]
    assert judge(cluster, cases) is ABSENT


def test_a_group_whose_members_nobody_knows_may_have_one_there() -> None:
    """Nothing is claimed about a group that was not described."""
    cluster = kop(a_listing(STALE))
    cases = [a_group(cluster, "billing", APP), *unknown(cluster, "old-billing")]
    assert missing(judge(cluster, cases)) == ("the members of old-billing",)


def test_a_group_that_no_broker_lists_has_no_members() -> None:
    """It was deleted."""
    cluster = kop(a_listing(STALE))
    cases = [a_group(cluster, "billing", APP), a_case("old-billing", cluster, listed=False)]
    assert [finding.group for finding in findings(judge(cluster, cases))] == ["billing"]


def test_without_members_or_tree_nobody_can_say() -> None:
    """Scrapes alone do not show it: a wrong label looks like a right one."""
    cluster = kop(a_listing(STALE))
    assert missing(judge(cluster, unknown(cluster, "billing", "old-billing")))
    assert missing(judge(kop(a_scrape({("orders", 0, "billing"): 1})), []))
    assert judge(a_cluster(), [a_case()]) is ABSENT
