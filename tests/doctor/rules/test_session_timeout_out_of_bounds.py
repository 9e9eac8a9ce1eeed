"""KLP213: a session timeout that the brokers do not allow."""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.session_timeout_out_of_bounds import judge
from kelpie.observations import EventKind
from tests.doctor.building import (
    DAY,
    NOW,
    a_case,
    a_cluster,
    a_member,
    a_state,
    an_event,
    events,
    found,
    missing,
)

BOUNDS = {
    ("broker", "group.min.session.timeout.ms"): "6000",
    ("broker", "group.max.session.timeout.ms"): "30000",
}


def _configured(ms: int, **settings: str) -> Case:
    """The log of a consumer has its configuration."""
    own = {("group billing", "session.timeout.ms"): str(ms)}
    own |= {("group billing", name.replace("_", ".")): value for name, value in settings.items()}
    joined = [an_event(EventKind.JOINED)]
    return a_case(cluster=a_cluster(settings={**BOUNDS, **own}), events=joined)


def test_a_refusal_in_a_log_is_found_and_names_the_bounds() -> None:
    lines = events(EventKind.SESSION_TIMEOUT_REFUSED, NOW - 1000, client_id="app-1")
    finding = found(judge(a_case(cluster=a_cluster(settings=BOUNDS), events=lines)))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary.startswith("Group billing: app-1 cannot join and reads nothing.")
    assert "The brokers allow 6 s to 30 s." in finding.summary


def test_with_other_members_at_work_it_is_a_warning_and_long_after_a_notice() -> None:
    state = a_state("Stable", a_member("app-2", 0))
    lines = events(EventKind.SESSION_TIMEOUT_REFUSED, NOW - 1000)
    assert found(judge(a_case(states=[state], events=lines))).severity is Severity.WARNING
    old = events(EventKind.SESSION_TIMEOUT_REFUSED, NOW - DAY)
    assert found(judge(a_case(states=[state], events=old))).severity is Severity.NOTICE


def test_a_configuration_outside_of_the_bounds_will_be_refused() -> None:
    assert "its consumers will be refused" in found(judge(_configured(60_000))).summary
    assert "its consumers will be refused" in found(judge(_configured(1_000))).summary


def test_a_configuration_within_the_bounds_is_healthy() -> None:
    """Near miss: just as long as they allow; or KIP-848, where brokers decide."""
    assert judge(_configured(30_000)) is ABSENT
    assert judge(_configured(6_000)) is ABSENT
    assert judge(_configured(60_000, group_protocol="CONSUMER")) is ABSENT


def test_without_logs_it_is_undetermined() -> None:
    """Too little data."""
    assert missing(judge(a_case(cluster=a_cluster(settings=BOUNDS)))) == ("the logs of its consumers",)
