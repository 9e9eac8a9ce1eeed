"""KLP404: two groups with one host and client id."""

import pytest

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.client_id_ambiguous import judge
from tests.doctor.building import a_case, a_cluster, a_member
from tests.doctor.rules.kop import a_group, a_listing, a_scrape, findings, kop, missing, unknown

SHARED = {"10.0.0.7-rdkafka": "second"}
FIRST, SECOND = ("orders", 0, "first"), ("orders", 0, "second")
BOTH_GROW = (a_scrape({FIRST: 1, SECOND: 1}), a_scrape({FIRST: 2, SECOND: 2}))


def test_members_of_two_groups_at_one_address_are_certain() -> None:
    """A finding for each of the two, as one incident."""
    cluster = kop(a_listing(SHARED))
    shared = a_member("m", 0, client_id="rdkafka", host="/10.0.0.7")
    cases = [a_group(cluster, "first", shared), a_group(cluster, "second", shared)]
    first, second = findings(judge(cluster, cases))
    assert (first.group, second.group) == ("first", "second")
    assert first.cause == second.cause == "/client_group_id/10.0.0.7-rdkafka"
    assert first.severity is Severity.WARNING
    assert first.summary == (
        "Groups first and second may be counted wrongly: they share client id rdkafka on 10.0.0.7; its "
        "node names second."
    )


@pytest.mark.parametrize(
    ("host", "client_id"), [("/10.0.0.8", "rdkafka"), ("/10.0.0.7", "rdkafka-2"), ("/10.0.0.7", "")]
)
def test_another_host_or_another_client_id_is_another_node(host: str, client_id: str) -> None:
    """Near misses."""
    cluster = kop(a_listing(SHARED))
    one = a_member("m", 0, client_id="rdkafka", host="/10.0.0.7")
    other = a_member("m", 0, client_id=client_id, host=host)
    assert judge(cluster, [a_group(cluster, "second", one), a_group(cluster, "first", other)]) is ABSENT


def test_two_members_of_one_group_may_share_a_node() -> None:
    """Near miss: the group is right for both."""
    cluster = kop(a_listing(SHARED))
    one = a_member("m", 0, client_id="rdkafka", host="/10.0.0.7")
    assert judge(cluster, [a_group(cluster, "second", one, one)]) is ABSENT


def test_ipv6_hosts_of_one_network_share_their_node() -> None:
    """KoP keeps the text before the first colon."""
    cluster = kop(a_listing({"2001-app": "second"}))
    one = a_member("m", 0, client_id="app", host="/2001:db8::7")
    other = a_member("m", 0, client_id="app", host="/2001:db8::8")
    cases = [a_group(cluster, "first", one), a_group(cluster, "second", other)]
    assert "on 2001:db8::7 and 2001:db8::8" in findings(judge(cluster, cases))[0].summary


def test_a_node_that_changes_its_group_while_both_read() -> None:
    """Without members: the listings show both writers, the scrapes that both go on."""
    listings = (a_listing({"10.0.0.7-app": "first"}), a_listing({"10.0.0.7-app": "second"}))
    cluster = kop(*listings, *BOTH_GROW)
    judged = findings(judge(cluster, unknown(cluster, "first", "second")))
    assert [(finding.group, finding.severity) for finding in judged] == [
        ("first", Severity.WARNING),
        ("second", Severity.WARNING),
    ]


def test_a_consumer_that_was_given_another_group_is_not_meant() -> None:
    """Near miss: the node changes its group, and the first one has stopped."""
    listings = (a_listing({"10.0.0.7-app": "first"}), a_listing({"10.0.0.7-app": "second"}))
    scrapes = (a_scrape({FIRST: 1, SECOND: 1}), a_scrape({FIRST: 1, SECOND: 2}))
    cluster = kop(*listings, *scrapes)
    assert missing(judge(cluster, unknown(cluster, "first", "second")))


def test_a_default_client_id_and_a_reader_without_node_are_a_notice() -> None:
    """Probable, and said so: every librdkafka consumer without a client.id is called rdkafka."""
    cluster = kop(a_listing(SHARED), *BOTH_GROW)
    judged = findings(judge(cluster, unknown(cluster, "first", "second")))
    assert {finding.group for finding in judged} == {"first", "second"}
    assert {finding.severity for finding in judged} == {Severity.NOTICE}
    assert "they may share client id" in judged[0].summary


def test_a_client_id_of_its_own_makes_nobody_suspect() -> None:
    """Near miss: the other reader has no node, for whatever reason; it does not share this one."""
    cluster = kop(a_listing({"10.0.0.7-second-1": "second"}), *BOTH_GROW)
    assert missing(judge(cluster, unknown(cluster, "first", "second")))


def test_the_label_ambiguous_says_it_itself() -> None:
    """Brokers that match the partition, too, label what two groups may have read."""
    both = ("orders", 0, "ambiguous")
    cluster = kop(a_scrape({both: 1}), a_scrape({both: 4}))
    (finding,) = findings(judge(cluster, []))
    assert (finding.group, finding.severity) == (None, Severity.WARNING)
    assert finding.summary.startswith(
        "Two groups or more are counted too low: 1 partition of orders is read by groups"
    )


def test_without_members_nobody_can_say() -> None:
    """A tree that is in order does not show who overwrote whom."""
    cluster = kop(a_listing({"10.0.0.7-app": "first"}))
    assert missing(judge(cluster, unknown(cluster, "first")))


def test_on_plain_kafka_a_shared_client_id_harms_nobody() -> None:
    """Near miss: nothing is counted by group there."""
    cluster = a_cluster()
    shared = a_member("m", 0, client_id="rdkafka", host="/10.0.0.7")
    cases = [a_group(cluster, "first", shared), a_group(cluster, "second", shared)]
    assert judge(cluster, [*cases, a_case()]) is ABSENT
