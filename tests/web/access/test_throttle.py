"""Guessing passwords gets slower and slower; the people who have one are not kept out."""

from kelpie.web.access.sessions import LIFE_S, Sessions
from kelpie.web.access.throttle import Throttle


def guess(throttle: Throttle, name: str, address: str, until_s: float, now_s: float = 0.0) -> int:
    """How many attempts somebody gets who tries as soon as it is allowed."""
    attempts = 0
    while now_s < until_s:
        wait_s = throttle.wait_s(name, address, now_s)
        if wait_s > 0:
            now_s += wait_s
            continue
        throttle.failed(name, address, now_s)
        attempts += 1
        now_s += 0.01
    return attempts


def test_a_typing_error_costs_nothing() -> None:
    throttle = Throttle()
    for _ in range(4):
        throttle.failed("anna", "192.0.2.1", 0.0)
    assert throttle.wait_s("anna", "192.0.2.1", 0.0) == 0


def test_an_hour_from_one_address_is_worth_few_guesses() -> None:
    assert guess(Throttle(), "anna", "192.0.2.1", 3600) < 30


def test_other_names_do_not_help() -> None:
    throttle = Throttle()
    guess(throttle, "anna", "192.0.2.1", 60)
    assert throttle.wait_s("bob", "192.0.2.1", 60) > 0
    assert throttle.wait_s("bob", "192.0.2.2", 60) == 0


def test_other_addresses_help_little() -> None:
    """A thousand machines that guess one name get hardly more than one."""
    throttle = Throttle()
    now_s, attempts = 0.0, 0
    while now_s < 3600:
        address = f"198.51.{attempts // 250}.{attempts % 250}"
        wait_s = throttle.wait_s("anna", address, now_s)
        now_s += max(wait_s, 0.01)
        if wait_s == 0:
            throttle.failed("anna", address, now_s)
            attempts += 1
    assert attempts < 150


def test_neighbours_in_ipv6_are_one_address() -> None:
    throttle = Throttle()
    for number in range(6):
        throttle.failed(f"name-{number}", f"2001:db8::{number}", 0.0)
    assert throttle.wait_s("anna", "2001:db8::ffff", 0.0) > 0
    assert throttle.wait_s("anna", "2001:db8:0:1::1", 0.0) == 0


def test_who_guesses_a_name_does_not_keep_its_owner_out() -> None:
    """From where she has logged in before."""
    throttle = Throttle()
    throttle.succeeded("anna", "192.0.2.1")
    for number in range(40):
        throttle.failed("anna", f"198.51.100.{number}", 0.0)
    assert throttle.wait_s("anna", "198.51.100.200", 0.0) > 0
    assert throttle.wait_s("anna", "192.0.2.1", 0.0) == 0


def test_success_forgives_the_address() -> None:
    throttle = Throttle()
    for _ in range(5):
        throttle.failed("anna", "192.0.2.1", 0.0)
    assert throttle.wait_s("anna", "192.0.2.1", 0.0) > 0
    throttle.succeeded("anna", "192.0.2.1")
    assert throttle.wait_s("anna", "192.0.2.1", 0.0) == 0


def test_failures_are_forgotten_in_time() -> None:
    throttle = Throttle()
    for _ in range(50):
        throttle.failed("anna", "192.0.2.1", 0.0)
    assert 0 < throttle.wait_s("anna", "192.0.2.1", 0.0) <= 300
    assert throttle.wait_s("anna", "192.0.2.1", 3600.0) == 0


def test_what_is_remembered_has_an_end() -> None:
    throttle = Throttle()
    for number in range(25_000):
        throttle.failed(f"name-{number}", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 0.0)
        throttle.succeeded(f"name-{number}", "192.0.2.1")
    assert len(throttle) <= 20_000


def test_a_session_ends_with_its_life() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    first, second = sessions.begin("anna", "m"), sessions.begin("anna", "m")
    assert first != second
    assert len(first) > 40
    now[0] = LIFE_S - 1
    assert sessions.find(first) is not None
    now[0] = LIFE_S
    assert sessions.find(first) is None
    assert sessions.find(None) is None
    assert sessions.find(["x"]) is None


def test_sessions_have_an_end_in_number() -> None:
    """Somebody who logs in again and again ends the oldest sessions, not the memory."""
    sessions = Sessions(lambda: 0.0)
    ids = [sessions.begin("anna", "m") for _ in range(10_001)]
    assert sessions.find(ids[0]) is None
    assert sessions.find(ids[1]) is not None
    assert sessions.end(ids[1]) is not None
    assert sessions.find(ids[1]) is None
