"""When brokers were away, as one survey after the other saw it."""

from kelpie.observations.presence import Presence
from tests.doctor.building import NOW, SECOND


def _times(presence: Presence) -> list[tuple[int, bool | None]]:
    return [((row.at or 0) - NOW, row.alive) for row in presence.rows(2)]


def _after(*surveys: tuple[int, bool]) -> Presence:
    presence = Presence()
    for at, alive in surveys:
        presence = presence.seen(alive, NOW + at)
    return presence


def test_a_broker_that_was_always_there_has_one_row() -> None:
    """The last survey that reached it counts."""
    assert _times(_after((0, True), (SECOND, True))) == [(SECOND, True)]


def test_an_absence_is_kept_from_the_survey_before_it_to_the_survey_after_it() -> None:
    """However many surveys there were before, meanwhile and since."""
    presence = _after((0, True), (1, True), (2, False), (3, False), (4, True), (5, True))
    assert _times(presence) == [(1, True), (2, False), (4, True), (5, True)]


def test_the_next_absence_replaces_the_last_one() -> None:
    """While it lasts, nothing says that the broker is back."""
    presence = _after((0, True), (1, False), (2, True), (3, False), (4, False))
    assert _times(presence) == [(2, True), (3, False)]


def test_a_broker_that_no_survey_ever_reached() -> None:
    """It was away before anybody looked."""
    assert _times(_after((0, False), (1, False))) == [(0, False)]
