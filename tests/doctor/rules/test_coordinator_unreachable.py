"""KLP105: the coordinator is said to be alive, and cannot be reached."""

from dataclasses import replace
from typing import Any

import pytest

from kelpie.cluster import ClusterView
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.coordinator_unreachable import judge
from kelpie.observations import EventKind, Trouble, Unasked
from tests.doctor.building import (
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_name_on,
    an_event,
    events,
    found,
    missing,
)

GROUP = a_name_on(1)
"""Its coordinator is broker 2."""


def a_cluster_behind_a_wall(**of_broker_2: Any) -> ClusterView:
    reason = "kafka-2:9092 refused the connection; yet listed as alive by broker 1"
    cluster = a_cluster(unknown=(2,), unasked=(Unasked("broker", "2", "refused"),))
    broker = replace(cluster.brokers[2], **{"reason": reason, **of_broker_2})
    return replace(cluster, brokers={**cluster.brokers, 2: broker})


def test_others_list_it_and_we_cannot_connect() -> None:
    """A consumer at this place waits for ever, though the cluster is well."""
    finding = found(judge(a_case(GROUP, a_cluster_behind_a_wall())))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary.endswith(
        "its coordinator, broker 2 (kafka-2:9092), is listed by other brokers, but connecting from here "
        "failed: connection refused."
    )
    assert finding.check == "kafka-broker-api-versions.sh --bootstrap-server kafka-2:9092"
    assert finding.evidence[-1].text.endswith("yet listed as alive by broker 1")
    assert finding.remedies[0].command == "nc -vz kafka-2 9092"


def test_a_coordinator_that_an_earlier_look_reached_may_have_just_died() -> None:
    """Near miss, as seen on 2.8.2: for seconds after a kill, other brokers list it."""
    for ago_ms, severity in ((20 * SECOND, Severity.NOTICE), (MINUTE, Severity.CRITICAL)):
        cluster = replace(a_cluster_behind_a_wall(), last_reached={2: NOW - ago_ms})
        assert found(judge(a_case(GROUP, cluster))).severity is severity


def test_a_broker_that_advertises_localhost_is_told_apart() -> None:
    """The commonest mistake of all with containers."""
    finding = found(judge(a_case(GROUP, a_cluster_behind_a_wall(host="localhost"))))
    assert "advertises localhost:9092" in finding.remedies[0].text


def test_a_name_that_cannot_be_looked_up_is_told_apart() -> None:
    """The second commonest: a name of the container network."""
    reason = "The name kafka-2 of kafka-2:9092 cannot be looked up here"
    finding = found(judge(a_case(GROUP, a_cluster_behind_a_wall(reason=reason))))
    assert finding.remedies[0].command == "getent hosts kafka-2"


@pytest.mark.parametrize(
    ("trouble", "said", "advised"),
    [
        (Trouble.CERTIFICATE_EXPIRED, "its TLS certificate is out of date", "Renew its certificate"),
        (Trouble.CERTIFICATE_NAME, "certificate is made out to other names", "with the name kafka-2"),
        (Trouble.CERTIFICATE_UNTRUSTED, "no authority that is trusted here", "Trust the authority"),
        (Trouble.TLS, "no encrypted connection comes about", "TLS on or off"),
        (Trouble.LOGIN, "it refused the login", "credentials of this one"),
        (Trouble.NO_ANSWER, "no connection in time", "a firewall"),
    ],
)
def test_each_reason_has_its_own_words_and_advice(trouble: Trouble, said: str, advised: str) -> None:
    """An expired certificate, a refused login and a firewall are three people's work."""
    finding = found(judge(a_case(GROUP, a_cluster_behind_a_wall(trouble=trouble.value, reason="so"))))
    assert finding.severity is Severity.CRITICAL
    assert said in finding.summary
    assert advised in finding.remedies[0].text
    network = trouble is Trouble.NO_ANSWER
    assert any("has just died" in it.text for it in finding.remedies) is network


def test_a_slow_coordinator_is_not_told_as_lost() -> None:
    """It may answer clients, which wait for 30 s."""
    finding = found(judge(a_case(GROUP, a_cluster_behind_a_wall(trouble=Trouble.SLOW.value))))
    assert finding.severity is Severity.WARNING
    assert "takes the connection and does not answer in time" in finding.summary


def test_a_coordinator_that_was_reached_is_reachable() -> None:
    """Near miss: another group's coordinator is behind the wall."""
    assert judge(a_case(a_name_on(0), a_cluster_behind_a_wall())) is ABSENT


def test_a_dead_coordinator_is_not_unreachable() -> None:
    """Near miss: nobody lists it any more, and KLP101 says so."""
    assert judge(a_case(GROUP, a_cluster(dead=(2,)))) is ABSENT


def test_clients_that_cannot_connect_are_believed() -> None:
    """The doctor may stand elsewhere than they do."""
    failures = events(EventKind.CONNECTION_FAILED, NOW - MINUTE, NOW, group=GROUP, node=2)
    finding = found(judge(a_case(GROUP, events=failures)))
    assert "by its clients since" in finding.summary
    assert finding.since == NOW - MINUTE


def test_clients_that_joined_afterwards_got_through() -> None:
    """Near miss: a broker restarted."""
    told = events(EventKind.CONNECTION_FAILED, NOW - 2 * MINUTE, NOW - MINUTE, group=GROUP, node=2)
    told.append(an_event(EventKind.JOINED, NOW, group=GROUP))
    assert judge(a_case(GROUP, events=told)) is ABSENT


def test_nobody_tried() -> None:
    """In files the brokers may be known only by their numbers."""
    assert missing(judge(a_case(GROUP, a_cluster(unknown=(2,)))))
    assert missing(judge(a_case(GROUP, ClusterView(NOW))))


def test_a_loopback_address_is_right_for_whoever_asks_on_loopback() -> None:
    """Near miss: on a developer's machine advertised.listeners is not what is wrong."""
    cluster = a_cluster_behind_a_wall(host="127.0.0.1", port=9093)
    far = found(judge(a_case(GROUP, cluster)))
    assert "advertised.listeners" in far.remedies[0].text
    near = found(judge(a_case(GROUP, replace(cluster, bootstrap="127.0.0.1:9092"))))
    assert near.remedies[0].command == "nc -vz 127.0.0.1 9093"
