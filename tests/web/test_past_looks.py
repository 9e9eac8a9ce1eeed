"""Looks of the past: how many are kept, and which one a time picks."""

from kelpie.model.time import Instant
from kelpie.observations import Committed, Listing, Observations
from kelpie.web.past_looks import PastLooks
from kelpie.web.snapshot import Snapshot
from tests.doctor.building import a_broker, an_offsets_topic
from tests.web.looking import a_snapshot

MINUTE = 60_000


def a_look(at: Instant, groups: int = 1) -> Snapshot:
    names = [f"group-{number}" for number in range(groups)]
    rows = Observations(
        brokers=[a_broker(1)],
        partitions=an_offsets_topic(brokers=[1], replicas=1),
        listings=[Listing(1, tuple(names), at=at, source="broker 1")],
        committed=[Committed(name, "orders", 0, 5, at=at, source="broker 1") for name in names],
    )
    return a_snapshot(rows, at)


def test_the_nearest_look_is_shown() -> None:
    kept = PastLooks()
    assert kept.nearest(5) is None
    for number in range(5):
        kept.add(a_look(number * MINUTE))
    assert [kept.nearest(at).at for at in (0, 80_000, 100_000, 10**12)] == [  # type: ignore[union-attr]
        0,
        MINUTE,
        2 * MINUTE,
        4 * MINUTE,
    ]


def test_the_older_looks_are_the_further_apart_they_are() -> None:
    kept, look = PastLooks(most=20), a_look(0)
    for number in range(300):
        later = look.light()
        later.at = number * MINUTE
        kept.add(later)
    times = kept.times
    assert len(times) == 20
    assert times[0] == 0
    assert times[-1] == 299 * MINUTE
    assert times[2] - times[1] > 5 * (times[-1] - times[-2])


def test_many_groups_leave_room_for_fewer_looks() -> None:
    size = a_look(0, groups=50).bytes
    kept = PastLooks(most_bytes=5 * size)
    for number in range(30):
        kept.add(a_look(number * MINUTE, groups=50))
    assert len(kept.times) <= 7
    assert kept.times[-1] == 29 * MINUTE


def test_a_light_look_has_rows_and_findings_and_no_cases() -> None:
    look = a_look(0, groups=3)
    light = look.light()
    assert [row.group for row in light.groups] == [row.group for row in look.groups]
    assert light.diagnosis.findings == look.diagnosis.findings
    assert light.row("group-2") == look.row("group-2")
    assert light.case("group-2") is None
    assert not light.has_cases
    assert look.has_cases
    assert light.bytes < look.bytes
