"""KLP402: members without a node."""

import pytest

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.mapping_missing import judge
from tests.doctor.building import MINUTE, NOW, a_case, a_cluster, a_member
from tests.doctor.rules.kop import a_group, a_listing, a_scrape, findings, kop, missing, unknown

APP = a_member("app-1-uuid", 0, client_id="app-1", host="/10.0.0.7")
NODE = {"10.0.0.7-app-1": "billing"}
OTHER = {"10.0.0.8-audit-1": "audit"}
OWN = ("orders", 0, "billing")


def test_a_member_without_a_node_is_named() -> None:
    """Its open connections keep their label; the next one has none."""
    cluster = kop(a_listing(OTHER))
    (finding,) = findings(judge(cluster, [a_group(cluster, "billing", APP)]))
    assert finding.severity is Severity.WARNING
    assert (finding.group, finding.members) == ("billing", ("app-1-uuid",))
    assert finding.summary == (
        "Group billing will be counted too low after the next reconnection: the mapping tree has no node for "
        "its only member, client id app-1."
    )
    assert finding.evidence[-1].text == "/client_group_id/10.0.0.7-app-1 is not among 1 node"
    assert finding.remedies[0].command.startswith("kelpie mappings repair")
    assert finding.check.endswith(" get /client_group_id/10.0.0.7-app-1")


def test_a_member_with_its_node_is_well() -> None:
    """The host of a member has a slash before it, that of a node has not."""
    cluster = kop(a_listing(NODE))
    assert judge(cluster, [a_group(cluster, "billing", APP)]) is ABSENT


@pytest.mark.parametrize(
    ("host", "client_id", "node"),
    [
        ("/10.0.0.7", "team/app", "10.0.0.7-team/app"),
        ("/10.0.0.7", "", "10.0.0.7-"),
        ("/10.0.0.7", 'a"b\\c-ü', '10.0.0.7-a"b\\c-ü'),
        ("/2001:db8::7", "app", "2001-app"),
    ],
)
def test_hostile_names_find_their_node(host: str, client_id: str, node: str) -> None:
    """Near misses: slashes, quotes, no client id at all, an address that KoP cuts."""
    cluster = kop(a_listing({node: "billing"}))
    member = a_member("m", client_id=client_id, host=host)
    assert judge(cluster, [a_group(cluster, "billing", member)]) is ABSENT


def test_a_client_id_that_cannot_be_a_path_is_said_to_be_one() -> None:
    """A repair cannot help: ZooKeeper refuses it."""
    cluster = kop(a_listing(OTHER))
    member = a_member("m", client_id="a\nb", host="/10.0.0.7")
    (finding,) = findings(judge(cluster, [a_group(cluster, "billing", member)]))
    assert finding.summary.endswith("ZooKeeper refuses such a client id as a path.")
    assert [remedy.command for remedy in finding.remedies] == [""]


def test_of_listings_without_times_one_with_the_node_is_enough() -> None:
    """Near miss: the second listing may have been made after the consumer was closed."""
    cluster = kop(a_listing(NODE | OTHER), a_listing({}))
    assert judge(cluster, [a_group(cluster, "billing", APP)]) is ABSENT


def test_with_times_the_nearest_listing_counts() -> None:
    """The node was there an hour ago, and is gone now."""
    cluster = kop(a_listing(NODE | OTHER, at=NOW - 60 * MINUTE), a_listing(OTHER, at=NOW))
    hostless = a_member("m", client_id="app-1")
    assert missing(judge(cluster, [a_group(cluster, "billing", hostless)]))
    stopped = kop(a_listing(NODE, at=NOW - 60 * MINUTE), a_listing({}, at=NOW))
    assert [each.group for each in findings(judge(stopped, [a_group(stopped, "billing", APP)]))] == [
        "billing"
    ]


def test_a_group_that_reads_and_is_in_no_listing_at_that_time() -> None:
    """Without members, but with times: it read before and after the listing was made."""
    scrapes = [a_scrape({OWN: messages}, at=NOW + place * MINUTE) for place, messages in ((0, 5), (2, 9))]
    cluster = kop(*scrapes, a_listing(OTHER, at=NOW + MINUTE))
    (finding,) = findings(judge(cluster, unknown(cluster, "billing", "audit")))
    assert finding.group == "billing"
    assert finding.summary.startswith(
        "Group billing will be counted too low after the next reconnection: it was reading "
    )


def test_a_group_that_may_have_started_after_the_listing_is_not_meant() -> None:
    """Near miss: no times, so the listing may be older than the consumer."""
    cluster = kop(a_scrape({OWN: 5}), a_scrape({OWN: 9}), a_listing(OTHER))
    assert missing(judge(cluster, unknown(cluster, "billing", "audit")))


def test_without_the_tree_nobody_can_say() -> None:
    """Nor without members."""
    cluster = kop(a_scrape({OWN: 5}))
    assert "/client_group_id" in missing(judge(cluster, unknown(cluster, "billing")))[0]
    assert missing(judge(kop(a_listing(NODE)), []))


def test_where_kop_counts_no_groups_there_are_no_nodes_to_miss() -> None:
    """Near miss: the default setting."""
    cluster = kop(a_scrape({("orders", 0, None): 5}), a_listing({}))
    assert judge(cluster, [a_group(cluster, "billing", APP)]) is ABSENT
    assert judge(a_cluster(), [a_case()]) is ABSENT


def test_a_group_that_nobody_asked_for_is_left_out() -> None:
    """kelpie doctor audit: billing's trouble is not wanted."""
    cluster = kop(a_listing(OTHER), all_groups=False)
    member = a_member("m", client_id="audit-1", host="/10.0.0.8")
    assert judge(cluster, [a_group(cluster, "audit", member)]) is ABSENT
