"""KLP407: the node went with an idle connection, and the consumer goes on."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules import mapping_missing
from kelpie.doctor.rules.label_lost_by_idle_close import judge
from tests.doctor.building import MINUTE, NOW, a_case, a_cluster, a_member
from tests.doctor.rules.kop import a_group, a_listing, a_scrape, findings, kop, missing, unknown

STAYS = {"10.0.0.8-audit-1": "audit"}
NODE = {"10.0.0.7-consumer-billing-1": "billing"}
LISTINGS = (a_listing(STAYS | NODE), a_listing(STAYS))
APP = a_member("m-1", 0, client_id="consumer-billing-1", host="/10.0.0.7")
OWN, LOST = ("orders", 0, "billing"), ("orders", 0, "")
AUDIT = ("audit", 0, "audit")
NAMES = ("billing", "audit")


def test_a_consumer_whose_topic_is_read_without_a_group_since() -> None:
    """Its partition moved to broker 2; there nobody knows its group."""
    scrapes = (
        a_scrape({OWN: 5}),
        a_scrape({}, broker="broker 2"),
        a_scrape({OWN: 7}),
        a_scrape({LOST: 40}, broker="broker 2"),
    )
    cluster = kop(*LISTINGS, *scrapes)
    (finding,) = findings(judge(cluster, unknown(cluster, *NAMES)))
    assert (finding.group, finding.severity) == ("billing", Severity.WARNING)
    assert finding.summary == (
        "Group billing is probably counted too low: the node of consumer-billing-1 on 10.0.0.7 is gone, and "
        "40 messages of orders were counted to no group: probably those of this group."
    )
    assert "connections.max.idle.ms" in finding.remedies[0].text
    assert "look whether it is a member" in finding.remedies[-1].text


def test_a_member_that_is_still_there_is_certain() -> None:
    """It keeps its label for now, so it is a notice; and KLP402 does not say it a second time."""
    cluster = kop(*LISTINGS)
    cases = [a_group(cluster, "billing", APP), *unknown(cluster, "audit")]
    (finding,) = findings(judge(cluster, cases))
    assert (finding.severity, finding.members) == (Severity.NOTICE, ("m-1",))
    assert mapping_missing.judge(cluster, cases) is ABSENT


def test_a_member_whose_partitions_are_read_without_a_group_has_lost_its_label() -> None:
    """Another group that reads the same partition under its own name does not matter."""
    other = ("orders", 0, "audit")
    cluster = kop(*LISTINGS, a_scrape({OWN: 5, other: 5}), a_scrape({OWN: 5, other: 9, LOST: 4}))
    (finding,) = findings(judge(cluster, [a_group(cluster, "billing", APP), *unknown(cluster, "audit")]))
    assert finding.severity is Severity.WARNING
    assert finding.summary.endswith("4 messages of orders were counted to no group: those of this group.")


def test_with_times_traffic_after_the_node_went_is_enough() -> None:
    """Any client id: the group is still counted under its own name."""
    node = {"10.0.0.7-own-name": "billing"}
    listings = (a_listing(STAYS | node, at=NOW), a_listing(STAYS, at=NOW + MINUTE))
    scrapes = [a_scrape({OWN: number}, at=NOW + number * MINUTE) for number in (2, 3)]
    cluster = kop(*listings, *scrapes)
    (finding,) = findings(judge(cluster, unknown(cluster, *NAMES)))
    assert finding.summary.endswith("is gone, though the group reads on.")
    assert finding.since == NOW + MINUTE


def test_a_consumer_that_was_closed_is_well() -> None:
    """Near miss: its node went as it should, and nothing is read without a group."""
    cluster = kop(*LISTINGS, a_scrape({OWN: 5, AUDIT: 1}), a_scrape({OWN: 7, AUDIT: 2}))
    assert judge(cluster, unknown(cluster, *NAMES)) is ABSENT


def test_a_consumer_that_left_its_group_was_closed() -> None:
    """Near miss: members say it, and whoever reads without a group is somebody else."""
    cluster = kop(*LISTINGS, a_scrape({OWN: 5}), a_scrape({OWN: 5, LOST: 9}))
    assert judge(cluster, [a_group(cluster, "billing"), *unknown(cluster, "audit")]) is ABSENT


def test_one_of_several_consumers_that_closes_is_well() -> None:
    """Near miss: its group reads on with the others."""
    two = NODE | {"10.0.0.7-consumer-billing-2": "billing"}
    listings = (a_listing(two, at=NOW), a_listing(NODE, at=NOW + MINUTE))
    scrapes = [a_scrape({OWN: number}, at=NOW + number * MINUTE) for number in (2, 3)]
    cluster = kop(*listings, *scrapes)
    assert judge(cluster, unknown(cluster, "billing")) is ABSENT


def test_all_nodes_that_go_at_once_were_closed() -> None:
    """Near miss: the end of a test, or of a day."""
    cluster = kop(a_listing(NODE | STAYS), a_listing({}), a_scrape({OWN: 5}), a_scrape({OWN: 6, LOST: 9}))
    assert judge(cluster, unknown(cluster, *NAMES)) is ABSENT


def test_a_restart_explains_it() -> None:
    """Near miss: the broker that had answered FindCoordinator was started again."""
    restarted = (a_scrape({AUDIT: 9, OWN: 5}, broker="broker 3"), a_scrape({AUDIT: 1}, broker="broker 3"))
    cluster = kop(*LISTINGS, a_scrape({OWN: 5}), a_scrape({OWN: 5, LOST: 9}), *restarted)
    assert judge(cluster, unknown(cluster, *NAMES)) is ABSENT


def test_a_node_that_comes_back_was_written_anew() -> None:
    """Near miss: the consumer asked for its coordinator again."""
    cluster = kop(*LISTINGS, a_listing(STAYS | NODE), a_scrape({OWN: 5}), a_scrape({OWN: 5, LOST: 9}))
    assert judge(cluster, unknown(cluster, *NAMES)) is ABSENT


def test_one_listing_tells_nothing() -> None:
    """Nobody knows what was there before."""
    cluster = kop(a_listing(STAYS), a_scrape({OWN: 5}))
    assert missing(judge(cluster, unknown(cluster, *NAMES)))
    assert judge(kop(a_scrape({OWN: 5})), []) is ABSENT
    assert judge(a_cluster(), [a_case()]) is ABSENT
