"""Arithmetic of positions: lag, rhythm, since when something waits, how old it is."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kelpie.doctor.diagnosis import diagnose
from kelpie.doctor.finding import Finding
from kelpie.doctor.positions import IllPeriod, Rhythm, lag, lag_ms, rate, written
from kelpie.doctor.rules import rules
from kelpie.model.names import TopicPartition
from kelpie.observations import LogEnds
from kelpie.observations.positions import NO_OFFSET
from tests.doctor.building import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    a_view,
    an_end,
    commits,
    looks,
)

ORDERS = TopicPartition("orders", 0)


def test_lag_is_never_negative() -> None:
    """Ends and offsets are asked for one after the other: a healthy consumer may have passed the end."""
    assert lag(120, an_end(100)) == 0


def test_a_reader_of_committed_records_has_no_lag_behind_the_last_stable_offset() -> None:
    """What it cannot read is not its fault; a position behind it shows a reader of uncommitted records."""
    end = an_end(500, stable=300)
    assert lag(300, end) == 0
    assert lag(250, end) == 50
    assert lag(301, end) == 199


def test_a_tool_between_surveys_does_not_free_what_is_held_back() -> None:
    """It tells no last stable offset. One that stood still before stands still; one that moved may be any."""
    seen = an_end(400, stable=300, at=NOW - 2 * MINUTE), an_end(450, stable=300, at=NOW - MINUTE)
    tool = an_end(500, earliest=NO_OFFSET, stable=NO_OFFSET)
    held = a_case(cluster=a_cluster(ends=[*seen, tool]), **looks(a_committed(300)))
    assert held.track(ORDERS).lag == 0
    moving = a_case(cluster=a_cluster(ends=[seen[1], tool]), **looks(a_committed(300)))
    assert moving.track(ORDERS).lag == 200


def test_without_ends_or_offset_there_is_no_lag() -> None:
    """No data is not the same as no lag."""
    assert lag(100, None) is None
    assert lag(NO_OFFSET, an_end(100)) is None
    assert lag(100, an_end(NO_OFFSET, stable=NO_OFFSET)) is None


def test_what_waits_is_known_by_the_ends_of_the_log_at_two_times() -> None:
    """One look says how much; two say since when."""
    ends = [an_end(150, at=NOW - 60 * SECOND), an_end(200, at=NOW)]
    case = a_case(cluster=a_cluster(ends=ends), commits=commits((NOW - 90 * SECOND, 100)))
    way = case.track(ORDERS)
    assert way.standing_since == NOW - 90 * SECOND
    assert way.unread_since == NOW - 60 * SECOND


def test_what_waits_is_known_by_the_time_of_the_newest_record() -> None:
    """Where producers are silent, one look is enough."""
    cluster = a_cluster(ends=[an_end(200, last_written=NOW - 40 * SECOND)])
    history = commits((NOW - 90 * SECOND, 100), (NOW - SECOND, 100))
    way = a_case(cluster=cluster, commits=history).track(ORDERS)
    assert way.unread_since == NOW - 40 * SECOND


def test_a_lag_that_has_just_come_up_proves_nothing() -> None:
    """A consumer commits the same offset for an hour, at the end of a quiet topic; then 100 records come."""
    ends = [an_end(100, at=NOW - 5 * SECOND), an_end(200, at=NOW, last_written=NOW - 10)]
    history = commits((NOW - HOUR, 100), (NOW - MINUTE, 100), (NOW - 2 * SECOND, 100))
    assert a_case(cluster=a_cluster(ends=ends), commits=history).track(ORDERS).unread_since == NOW - 10


def test_a_removal_begins_a_new_way() -> None:
    """After offsets were deleted, a lower one is no step back."""
    history = commits((NOW - 90, 100), (NOW - 60, NO_OFFSET), (NOW - 30, 7))
    way = a_case(commits=history).track(ORDERS)
    assert [point.offset for point in way.points] == [7]
    assert way.offset == 7


def test_what_the_last_survey_did_not_see_is_gone() -> None:
    """Earlier surveys may have seen an offset that was deleted since."""
    case = a_case(committed={}, committed_over_time={ORDERS: (a_committed(100, at=NOW - HOUR),)})
    assert case.track(ORDERS).offset == NO_OFFSET


def test_rhythm_ignores_one_long_pause() -> None:
    """One night's outage must not make the next one look usual."""
    pace = Rhythm.of([*range(0, 50 * SECOND, 5 * SECOND), *range(HOUR, HOUR + 50 * SECOND, 5 * SECOND)])
    assert pace.usual_ms == 5 * SECOND
    assert pace.patience_ms == 15 * SECOND
    assert pace.pauses_of(30 * MINUTE) == 1


def test_rhythm_knows_jobs_that_pause() -> None:
    """A job that runs every hour is silent for most of it."""
    bursts = [start + at for start in range(0, 5 * HOUR, HOUR) for at in range(0, 60 * SECOND, 5 * SECOND)]
    assert Rhythm.of(bursts).pauses_of(50 * MINUTE) == 4


def test_a_time_in_which_the_group_was_found_ill_is_no_rhythm() -> None:
    """Three outages must not teach the doctor that outages are ordinary."""
    runs = [range(start, start + 60 * SECOND, 5 * SECOND) for start in range(0, 12 * MINUTE, 3 * MINUTE)]
    times = [at for run in runs for at in run]
    outages = [IllPeriod(run[-1], run[-1] + 25 * SECOND) for run in runs[:-1]]
    assert Rhythm.of(times).pauses_of(MINUTE) == 3
    assert Rhythm.of(times, outages).pauses_of(MINUTE) == 0
    assert Rhythm.of(times, outages).usual_ms == 5 * SECOND


def test_a_pause_in_which_the_generation_changed_is_no_rhythm() -> None:
    """Members commit when a rebalance takes their partitions, whenever they committed last."""
    times = [0, 200, 500, 10_500, 20_500]
    assert Rhythm.of(times).gaps == (200, 300, 10_000, 10_000)
    assert Rhythm.of(times, changes=(150, 400)).gaps == (10_000, 10_000)


def test_one_commit_has_no_rhythm() -> None:
    """Then clients' own default counts: a commit every 5 s."""
    pace = Rhythm.of([NOW])
    assert not pace.is_known
    assert pace.patience_ms == 15 * SECOND


def test_age_of_a_record_lies_between_two_looks() -> None:
    """The log ended at 100 an hour ago and at 200 now: record 150 came in about half an hour ago."""
    when = written(150, [an_end(100, at=NOW - HOUR), an_end(200, at=NOW)])
    assert (when.after, when.before, when.about) == (NOW - HOUR, NOW, NOW - HOUR // 2)
    case = a_case(
        cluster=a_cluster(ends=[an_end(100, at=NOW - HOUR), an_end(200)]), committed=[a_committed(150)]
    )
    assert lag_ms(case.track(ORDERS)) == (HOUR // 2, False)


def test_age_of_a_record_that_every_look_saw_is_a_lower_bound() -> None:
    """It may be older than the oldest look."""
    case = a_case(
        cluster=a_cluster(ends=[an_end(100, at=NOW - HOUR), an_end(200)]), committed=[a_committed(50)]
    )
    assert lag_ms(case.track(ORDERS)) == (HOUR, True)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=8))
def test_rates_are_slopes_and_never_divide_by_zero(points: list[tuple[int, int]]) -> None:
    """Looks may fall into the same millisecond."""
    points.sort(key=lambda point: point[0])
    slope = rate(points)
    if slope is None:
        assert len(points) < 2 or points[0][0] == points[-1][0]
    else:
        assert round(slope * (points[-1][0] - points[0][0])) == points[-1][1] - points[0][1]


@given(
    offset=st.integers(0, 10**6),
    latest=st.integers(0, 10**6),
    held=st.integers(0, 10**6),
)
def test_lag_never_counts_what_cannot_be_read(offset: int, latest: int, held: int) -> None:
    """Whatever the isolation level, lag is at most what lies before the end of the log."""
    end = LogEnds("orders", 0, 0, latest, stable=min(held, latest))
    left = lag(offset, end)
    assert left is not None
    assert 0 <= left <= max(0, latest - offset)
    if offset <= end.stable:
        assert left == end.stable - offset


@given(
    interval=st.integers(50, 60 * SECOND),
    jitter=st.lists(st.floats(-0.4, 0.4), min_size=8, max_size=40),
    batches=st.lists(st.integers(0, 500), min_size=40, max_size=40),
    behind=st.integers(0, 300),
    looked=st.floats(0.0, 1.0),
    commits_again=st.booleans(),
    surveys=st.integers(1, 4),
)
def test_a_steady_consumer_is_never_called_ill(
    *,
    interval: int,
    jitter: list[float],
    batches: list[int],
    behind: int,
    looked: float,
    commits_again: bool,
    surveys: int,
) -> None:
    """Whatever its rhythm, and whether it commits offsets again that have not changed or not.

    Records wait for it only while it moves: a steady consumer leaves none behind for good.
    """
    moments: list[tuple[int, int]] = []
    at, offset = 0, 1000
    for shift, batch in zip(jitter, batches, strict=False):
        at += max(1, round(interval * (1 + shift)))
        offset += batch
        if commits_again or not moments or offset != moments[-1][1]:
            moments.append((at, offset))
    begin = NOW - at - round(interval * looked)
    history = commits(*((begin + when, value) for when, value in moments), leader_epoch=3)
    ends: list[LogEnds] = []
    for then in range(NOW, NOW - surveys * 3 * interval, -3 * interval):
        stood = max((value for when, value in moments if begin + when <= then), default=1000)
        before = max((value for when, value in moments if begin + when <= then - 2.8 * interval), default=0)
        waiting = behind if stood > before else 0
        ends.insert(0, an_end(stood + waiting, at=then, last_written=then))
    case = a_case(
        cluster=a_cluster(a_view(0, 1, topic="orders", leader_epoch=3), ends=ends),
        commits=history,
        **looks(a_committed(offset, leader_epoch=3)),
        states=[a_state("Stable", a_member("app-1", 0))],
        history_from=history[0].at,
    )
    for code in ("KLP303", "KLP304", "KLP305", "KLP308", "KLP309", "KLP310", "KLP312"):
        rule = rules()[code]
        assert rule.judge is not None
        assert not isinstance(rule.judge(case), Finding), code
    assert case.commit_rhythm.last == history[-1].at


def test_a_case_computes_the_positions_of_a_partition_once() -> None:
    """Thirteen rules ask for them. Another case has its own, even one that is equal."""
    case = a_case(commits=commits((NOW, 7)))
    assert case.track(ORDERS) is case.track(ORDERS)
    assert replace(case).track(ORDERS) is not case.track(ORDERS)


def test_what_rules_derived_does_not_stay_with_the_case() -> None:
    """Ten thousand cases are in memory at once: each would hold the positions in all its partitions."""
    case = a_case(cluster=a_cluster(ends=[an_end(200)]), commits=commits((NOW, 7)))
    diagnose(case)
    assert not {"reads", "commit_rhythm", "_tracks", "_rhythms"} & vars(case).keys()
