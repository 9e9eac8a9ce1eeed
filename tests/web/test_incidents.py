"""Incidents of a live cluster: what began and ended from look to look."""

from dataclasses import replace

from kelpie.doctor.finding import Severity
from kelpie.examination import Examined
from kelpie.observations import Observations
from kelpie.web.incidents import AWAY, Incident, IncidentLog, by_time
from kelpie.web.snapshot import Snapshot
from tests.doctor.building import MINUTE, NOW
from tests.web.looking import a_watch
from tests.web.test_measures import observed
from tests.web.watching import client


def outage_from_look_3_to_5() -> list[tuple[int, Observations]]:
    times = [(number, NOW - (9 - number) * MINUTE) for number in range(10)]
    return [(at, observed(at, 5, 5, dead=2 if 3 <= number <= 5 else None)) for number, at in times]


def test_an_incident_lasts_from_the_first_look_that_finds_it_to_the_first_that_does_not() -> None:
    watch = a_watch(*outage_from_look_3_to_5())
    found = {each.name: each for each in watch.incidents.all() if each.severity is Severity.CRITICAL}
    assert set(found) == {"broker-dead", "offsets-partition-leaderless"}
    for incident in found.values():
        assert incident.began == NOW - 6 * MINUTE
        assert incident.ended == NOW - 3 * MINUTE


def test_an_incident_never_ends_before_it_begins() -> None:
    """Where it began may follow from a log, and that broker's clock may be ahead."""
    looks = outage_from_look_3_to_5()
    assert all(broker.at == NOW for _, rows in looks for broker in rows.brokers)
    away = [each for each in a_watch(*looks).incidents.all() if each.name == AWAY]
    assert [(each.began, each.ended) for each in away] == [(NOW - 6 * MINUTE, NOW - 3 * MINUTE)]


def test_a_look_that_saw_nothing_ends_nothing() -> None:
    looks = outage_from_look_3_to_5()[:6]
    watch = a_watch(*looks)
    before = watch.incidents.all()
    assert any(each.ended is None for each in before)
    last = watch.latest
    assert last is not None
    nothing = Examined(replace(last.diagnosis, findings=()), False, ())
    watch.incidents.add(Snapshot(nothing, NOW, 1))
    assert [each.ended for each in watch.incidents.all()] == [each.ended for each in before]


def test_old_incidents_make_room_for_new_ones() -> None:
    log = IncidentLog(most=2)
    for number in range(4):
        for at, rows in outage_from_look_3_to_5():
            look = a_watch((at + number * 60 * MINUTE, rows)).latest
            assert look is not None
            log.add(look)
    over = [each for each in log.all() if each.ended is not None]
    assert len(over) == 2
    assert min(each.ended or 0 for each in over) > NOW + 2 * 60 * MINUTE


def test_those_that_go_on_come_first_and_the_worst_of_them_first() -> None:
    def an_incident(name: str, severity: Severity, began: int, ended: int | None) -> Incident:
        return Incident("KLP1", name, "", severity, "", (), 0, began, ended)

    order = by_time(
        [
            an_incident("old", Severity.CRITICAL, 1, 2),
            an_incident("mild", Severity.NOTICE, 5, None),
            an_incident("recent", Severity.NOTICE, 3, 4),
            an_incident("bad", Severity.CRITICAL, 2, None),
        ]
    )
    assert [each.name for each in order] == ["bad", "mild", "recent", "old"]


def test_the_page_shows_them_with_times_and_a_picture() -> None:
    browser = client([a_watch(*outage_from_look_3_to_5())])
    data = browser.get("/clusters/main/incidents.json").json()
    critical = [each for each in data["incidents"] if each["severity"] == "critical"]
    assert critical
    assert all(each["ended"] is not None for each in critical)
    page = browser.get("/clusters/main/incidents").text
    assert 'class="time-line"' in page
    assert page.count('class="bar') == data["count"]
    only = browser.get("/clusters/main/incidents.json?severity=critical").json()
    assert only["count"] == len(critical)


def test_a_page_of_the_past_knows_nothing_of_what_came_later() -> None:
    browser = client([a_watch(*outage_from_look_3_to_5())])
    then = browser.get(f"/clusters/main/incidents.json?at={NOW - 8 * MINUTE}&severity=critical").json()
    assert then["count"] == 0


def test_a_part_of_the_time_has_its_own_incidents() -> None:
    browser = client([a_watch(*outage_from_look_3_to_5())])
    part = {"from": str(NOW - 2 * MINUTE), "to": str(NOW), "severity": "critical"}
    assert browser.get("/clusters/main/incidents.json", params=part).json()["count"] == 0
