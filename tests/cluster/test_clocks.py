"""How far a broker's clock is from the clock here: what rows prove, and no more."""

from kelpie.cluster.clocks import IN_STEP, Skew, commits_after_looks, skews
from kelpie.model.time import Instant
from kelpie.observations import ClockReading
from tests.doctor.building import MINUTE, NOW, SECOND, a_committed, commits

_90_S = 90 * SECOND


def _skew(
    *readings: ClockReading,
    stamp: Instant | None = None,
    records: Instant | None = None,
    after: tuple[Instant, Instant] | None = None,
) -> Skew:
    stamps = {1: stamp} if stamp is not None else {}
    pairs = {1: [after]} if after is not None else {}
    return skews(
        [1], NOW, readings=readings, newest_stamps=stamps, latest_records=records, committed_after=pairs
    )[1]


def test_the_controllers_clock_is_exact_to_a_round_trip() -> None:
    """Both directions; half of what counts as in step is left for the broker's own deviation."""
    for skew in (_90_S, -_90_S):
        reading = ClockReading(1, NOW + skew, NOW - 20, NOW)
        found = _skew(reading, stamp=NOW + skew - 3 * MINUTE)
        assert found.least is not None
        assert found.most is not None
        assert found.least <= skew <= found.most
        assert abs(found.shift - skew) < 5 * SECOND
        assert found.uncertain_ms == 0


def test_a_commit_that_is_yet_to_come_shows_that_the_clock_here_is_slow() -> None:
    """It was read by now, so it was made by now."""
    assert _skew(stamp=NOW + _90_S) == (_90_S, None)
    assert _skew(stamp=NOW + _90_S).shift == _90_S


def test_a_commit_that_a_look_did_not_see_shows_that_the_clock_here_is_fast() -> None:
    """It was made after that look, and carries an earlier time."""
    rows = commits((NOW - MINUTE - _90_S, 10), (NOW - 40 * SECOND - _90_S, 20), (NOW - SECOND - _90_S, 30))
    look = a_committed(10, at=NOW - 50 * SECOND)
    pair = commits_after_looks(rows, [look])
    assert pair == (NOW - 40 * SECOND - _90_S, NOW - 50 * SECOND)
    found = _skew(stamp=NOW - SECOND - _90_S, after=pair)
    assert found.shift < -80 * SECOND
    assert NOW - SECOND - _90_S - found.shift <= NOW, "nothing is converted to a time that is yet to come"


def test_looks_that_saw_everything_prove_nothing() -> None:
    """The last commit was there already; an error is no look."""
    rows = commits((NOW - MINUTE, 10))
    assert commits_after_looks(rows, [a_committed(10, at=NOW)]) is None
    assert commits_after_looks(rows, [a_committed(-1, error=15)]) is None


def test_a_busy_broker_is_in_step_and_a_quiet_one_uncertain() -> None:
    """Of a broker that wrote nothing for a while, nothing tells whether its clock is slow."""
    busy = _skew(stamp=NOW - 2 * SECOND)
    assert (busy.shift, busy.uncertain_ms) == (0, 0)
    quiet = _skew(stamp=NOW - MINUTE)
    assert (quiet.shift, quiet.uncertain_ms) == (0, MINUTE)
    producing = _skew(stamp=NOW - MINUTE, records=NOW - SECOND)
    assert (producing.shift, producing.uncertain_ms) == (0, 0)
    assert _skew() == IN_STEP


def test_what_contradicts_itself_bounds_only_one_side() -> None:
    """The clock was set in between, or another broker stamped some commits."""
    assert _skew(stamp=NOW, after=(NOW - 5 * MINUTE, NOW - MINUTE)).most is None
    wrong = ClockReading(1, NOW, NOW, NOW)
    assert _skew(wrong, stamp=NOW + _90_S).shift == _90_S, "its own commits count more"
