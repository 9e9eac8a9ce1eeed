"""KLP603: certificates that end within days."""

import pytest

from kelpie.doctor.finding import ABSENT, Finding, Severity, Undetermined
from kelpie.doctor.rules.certificate_expires import judge
from kelpie.observations import Certificate
from tests.doctor.building import DAY, HOUR, NOW, a_cluster

YEAR = 365 * DAY


def a_certificate(left: int, whole: int = YEAR, holder: str = "broker", node: int = 1) -> Certificate:
    return Certificate(
        holder, f"CN=kafka-{node}", NOW + left - whole, NOW + left, node, NOW, f"broker {node}"
    )


def _findings(*rows: Certificate) -> list[Finding]:
    judgement = judge(a_cluster(certificates=rows), [])
    assert isinstance(judgement, list)
    return judgement


def test_a_certificate_that_ends_within_a_week_is_a_warning_and_within_a_month_a_notice() -> None:
    (soon,) = _findings(a_certificate(3 * DAY))
    assert soon.severity is Severity.WARNING
    assert soon.summary == (
        "The TLS certificate of broker 1 ends at 2027-01-18 08:00:00 UTC (in 3 d). From then on no client "
        "can connect to it over TLS."
    )
    assert soon.brokers == (1,)
    show = "openssl s_client -connect kafka-1:9092 </dev/null | openssl x509 -noout -dates"
    assert soon.remedies[-1].command == show
    (later,) = _findings(a_certificate(20 * DAY))
    assert later.severity is Severity.NOTICE


def test_brokers_are_told_together_and_the_first_to_end_counts() -> None:
    (finding,) = _findings(
        a_certificate(5 * DAY, node=2), a_certificate(3 * DAY), a_certificate(YEAR // 2, node=3)
    )
    assert finding.brokers == (1, 2)
    assert "brokers 1 and 2" in finding.summary
    assert "in 3 d" in finding.summary


@pytest.mark.parametrize(
    ("left", "whole"), [(40 * DAY, YEAR), (28 * DAY, 90 * DAY), (12 * HOUR, DAY), (8 * HOUR, DAY)]
)
def test_certificates_that_are_renewed_in_time_are_healthy(left: int, whole: int) -> None:
    """Near miss: those that live for 90 days are renewed a month before, those of a day after some hours."""
    assert judge(a_cluster(certificates=[a_certificate(left, whole)]), []) is ABSENT


def test_a_short_lived_certificate_whose_renewal_is_late_is_told() -> None:
    (finding,) = _findings(a_certificate(HOUR, DAY))
    assert finding.severity is Severity.WARNING


def test_the_authority_and_the_clients_own_certificate_are_told_as_what_they_are() -> None:
    authority, own = _findings(
        a_certificate(2 * DAY, holder="authority"), a_certificate(3 * DAY, holder="client", node=-1)
    )
    assert "the authority CN=kafka-1, which signed that of broker 1" in authority.summary
    assert "trust stores" in authority.remedies[0].text
    assert "with which the doctor connects" in own.summary
    (ended,) = _findings(a_certificate(-HOUR, holder="client", node=-1))
    assert ended.severity is Severity.WARNING
    assert "ended at 2027-01-15 07:00:00 UTC (1 h ago). Since then" in ended.summary


def test_a_look_without_tls_leaves_open_what_the_other_listener_shows() -> None:
    """A broker with only plain listeners has no certificate; of one with both, nobody saw it."""
    plain = {("broker 1", "listeners"): "PLAINTEXT://:9092,CONTROLLER://:9093"}
    names = {("broker 1", "listener.security.protocol.map"): "PLAINTEXT:PLAINTEXT,OUTSIDE:SASL_SSL,SSL:SSL"}
    assert judge(a_cluster(), []) is ABSENT
    assert judge(a_cluster(settings={**plain, **names}), []) is ABSENT
    both = {("broker 1", "listeners"): "PLAINTEXT://:9092,OUTSIDE://:9094"}
    judgement = judge(a_cluster(settings={**both, **names}), [])
    assert isinstance(judgement, Undetermined)
    assert "over TLS" in judgement.missing[0]
    assert isinstance(judge(a_cluster(settings={("broker", "listeners"): "SSL://:9093"}), []), Undetermined)
