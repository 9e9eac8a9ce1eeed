"""KLP212: members of one group that have nothing in common."""

from dataclasses import replace

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.two_applications_in_one_group import judge
from kelpie.observations import Member
from tests.doctor.building import MINUTE, NOW, a_case, a_member, a_state, found, missing

BILLING = [
    a_member("billing-1-x", client_id="billing-1", host="/10.0.0.1"),
    a_member("billing-2-x", client_id="billing-2", host="/10.0.0.2"),
]
REFUNDS = a_member("refunds-1-x", client_id="refunds-1", host="/10.0.0.3", topic="payments")


def _case(*members: Member, since: int = NOW - 10 * MINUTE) -> Case:
    state = a_state("Stable", *members)
    return a_case(states=[state._replace(at=since), state])


def test_two_applications_on_two_machines_with_two_names_are_a_warning() -> None:
    finding = found(judge(_case(*BILLING, REFUNDS)))
    assert finding.severity is Severity.WARNING
    assert "2 applications" in finding.summary
    assert "payments" in finding.summary


def test_where_only_the_machines_or_only_the_names_differ_it_is_a_notice() -> None:
    """Java's default client ids are alike; several listeners of one application run on one machine."""
    same_name = replace(REFUNDS, client_id="billing-3", member_id="billing-3-x")
    assert found(judge(_case(*BILLING, same_name))).severity is Severity.NOTICE
    assert found(judge(_case(*BILLING, replace(REFUNDS, host="/10.0.0.1")))).severity is Severity.NOTICE


def test_consumers_of_one_application_for_each_topic_are_ordinary() -> None:
    """Near miss: Spring gives each listener a consumer; hosts and names are the same."""
    listener = replace(REFUNDS, client_id="billing-3", member_id="billing-3-x", host="/10.0.0.1")
    assert judge(_case(*BILLING, listener)) is ABSENT


def test_subscriptions_that_overlap_are_one_application() -> None:
    """Near miss: a new version subscribes to one topic more."""
    assert judge(_case(*BILLING, replace(REFUNDS, subscribed=("orders", "payments")))) is ABSENT


def test_a_deployment_that_has_just_begun_is_undetermined() -> None:
    """Near miss: the new version reads another topic, and the old one is still there."""
    assert missing(judge(_case(*BILLING, REFUNDS, since=NOW - MINUTE)))


def test_without_subscriptions_it_is_undetermined() -> None:
    """Too little data."""
    assert missing(judge(a_case()))
    assert missing(judge(_case(*BILLING, replace(REFUNDS, subscribed=None))))
