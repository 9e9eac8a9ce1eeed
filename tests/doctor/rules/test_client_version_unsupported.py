"""KLP601: a consumer and its brokers have no version in common."""

from typing import Any

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.client_version_unsupported import judge
from kelpie.evidence.logs import read_log
from kelpie.observations import Event, EventKind
from tests.doctor.building import DAY, NOW, a_case, a_member, a_state, an_event, events, found, missing


def _lines(client: str, broker: str, at: int = NOW - 1000) -> list[Event]:
    details: dict[str, Any] = {"request": "FETCH", "client": client, "broker": broker}
    return events(EventKind.VERSION_UNSUPPORTED, at, client_id="app-1", details=details)


def test_a_consumer_that_is_too_old_is_told_with_both_ranges() -> None:
    finding = found(judge(a_case(events=_lines("0 to 2", "4 to 17"))))
    assert finding.severity is Severity.CRITICAL
    assert "app-1 cannot talk to the brokers: the consumer is too old." in finding.summary
    assert "The consumer has versions 0 to 2 of FETCH, the broker 4 to 17" in finding.summary


def test_brokers_that_are_too_old_are_told_as_such() -> None:
    state = a_state("Stable", a_member("app-2", 0))
    finding = found(judge(a_case(states=[state], events=_lines("10 to 22", "4 to 17"))))
    assert finding.severity is Severity.WARNING
    assert "the broker is too old" in finding.summary


def test_a_client_of_0_10_2_names_its_own_version_only() -> None:
    """As it was logged by a real one against brokers of 4.3.1, at DEBUG."""
    (event,) = _read("The broker is too new to support FETCH version 3")
    state = a_state("Stable", a_member("app-1", 0))
    finding = found(judge(a_case(states=[state], events=[event])))
    assert "the consumer is too old. The consumer has FETCH up to version 3, the broker later ones only" in (
        finding.summary
    )
    (event,) = _read("The broker is too old to support FETCH version 3")
    summary = found(judge(a_case(events=[event]))).summary
    assert (
        "the broker is too old. The consumer has FETCH from version 3 on, the broker earlier ones only"
        in summary
    )


def test_long_after_an_upgrade_it_is_a_notice() -> None:
    """Near miss: the log is of yesterday."""
    assert found(judge(a_case(events=_lines("0 to 2", "4 to 17", NOW - DAY)))).severity is Severity.NOTICE


def test_other_lines_are_healthy() -> None:
    """Near miss."""
    assert judge(a_case(events=[an_event(EventKind.JOINED)])) is ABSENT


def test_without_logs_it_is_undetermined() -> None:
    """Too little data."""
    assert missing(judge(a_case())) == ("the logs of its consumers",)


def _read(why: str) -> list[Event]:
    lines = [
        "2026-11-15 20:56:40,123 ERROR [Consumer clientId=c, groupId=g] Polling failed",
        f"org.apache.kafka.common.errors.UnsupportedVersionException: {why}",
    ]
    return read_log(lines, "a.log").observations.events


def test_the_words_of_java_are_read() -> None:
    """Both wordings; one without ranges is about a feature, and means nothing here."""
    for who in ("broker", "node"):
        (event,) = _read(
            f"The {who} does not support FETCH with version in range [0,2]. The supported range is [4,17]."
        )
        assert (event.kind, event.group) == (EventKind.VERSION_UNSUPPORTED, "g")
        assert event.details == {"request": "FETCH", "client": "0 to 2", "broker": "4 to 17"}
    assert not _read("The broker does not support OFFSET_FOR_LEADER_EPOCH")
