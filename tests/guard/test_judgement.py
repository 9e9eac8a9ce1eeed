"""Which sightings are fatal, and when: in virtual time, and on real recordings."""

import pytest

from kelpie.errors import ErrorCode
from kelpie.evidence.logs.layouts import parse_head
from kelpie.evidence.logs.times import Clock
from kelpie.guard.judgement import Fatal, Judgement, Limits, Sign
from kelpie.guard.sightings import LogWatch, Sighting
from kelpie.observations import EventKind as Kind
from tests.evidence import unpacked

LIMITS = Limits(lookup_s=60, return_s=30)


def seen(kind: Kind | None, error: int | None = None) -> Sighting:
    return Sighting(kind, "line", error)


def judged(*sightings: tuple[float, Kind | None], until: float = 0.0) -> Fatal | None:
    """The first verdict on sightings at these times; time goes on until the end."""
    judgement = Judgement(LIMITS)
    for now, kind in (*sightings, (until, Kind.COORDINATOR_FOUND)):
        verdict = judgement.tick(now) or judgement.see(seen(kind), now)
        if verdict is not None:
            return verdict
    return None


@pytest.mark.parametrize("kind", [Kind.REBALANCE_FAILED, Kind.CLIENT_FAILED, None])
def test_what_never_recovers_is_fatal_at_once(kind: Kind | None) -> None:
    """Nothing is gained by waiting."""
    verdict = judged((5, kind))
    assert verdict is not None
    assert verdict.text == "line"


def test_lookups_that_fail_for_the_whole_limit_are_fatal() -> None:
    """A coordinator that is gone for good; found and lost at once, it is gone too."""
    failing = [(float(now), Kind.LOOKUP_FAILED) for now in range(0, 61, 10)]
    assert judged(*failing) == Fatal(Sign.COORDINATOR_LOOKUP, "7 failures in 60 s", "line")
    alternating = [
        (now + moment, kind)
        for now in range(0, 61, 10)
        for moment, kind in ((0.0, Kind.COORDINATOR_LOST), (0.1, Kind.COORDINATOR_FOUND))
    ]
    assert judged(*alternating) is not None


@pytest.mark.parametrize(
    "sightings",
    [
        [(0.0, Kind.LOOKUP_FAILED)],
        [(0.0, Kind.LOOKUP_FAILED), (59.0, Kind.LOOKUP_FAILED)],
        [
            (0.0, Kind.LOOKUP_FAILED),
            (80.0, Kind.LOOKUP_FAILED),
        ],  # A single retry late: two lines are no series.
        [(float(now), Kind.LOOKUP_FAILED) for now in range(0, 59, 2)],
        [(float(now), Kind.LOOKUP_FAILED) for now in range(0, 1000, 100)],
        [
            *((float(now), Kind.LOOKUP_FAILED) for now in range(0, 50, 5)),
            (51.0, Kind.JOINED),
            *((float(now), Kind.LOOKUP_FAILED) for now in range(52, 80, 5)),
        ],
        # Brokers are restarted one after another; each time another coordinator is found, and serves.
        [
            (now + moment, kind)
            for now in range(0, 600, 60)
            for moment, kind in ((0.0, Kind.COORDINATOR_LOST), (5.0, Kind.COORDINATOR_FOUND))
        ],
    ],
)
def test_lookups_that_fail_now_and_then_are_not(sightings: list[tuple[float, Kind]]) -> None:
    """Coordinators move, brokers restart: a consumer finds the new one by itself."""
    assert judged(*sightings, until=1000) is None


def test_a_consumer_that_polls_too_late_and_joins_again_is_not_fatal() -> None:
    """It was slow, and it goes on: ending it would throw its work away."""
    slow = [(0.0, Kind.JOINED), (100.0, Kind.POLL_INTERVAL_EXCEEDED)]
    assert judged(*slow, (129.0, Kind.JOINING), until=1000) is None
    assert judged(*slow, until=129) is None
    verdict = judged(*slow, until=131)
    assert verdict == Fatal(Sign.POLL_LIMIT, "it did not join again within 30 s", "line")


def test_nothing_is_concluded_from_silence_where_joins_are_not_logged() -> None:
    """librdkafka does not log that it joins, nor does any client at level WARN."""
    assert judged((100.0, Kind.POLL_INTERVAL_EXCEEDED), until=1000) is None


def test_a_fenced_static_member_is_fatal_at_once_and_one_fenced_by_its_epoch_if_it_stays_away() -> None:
    """The first client has stopped; the second joins again by itself (KIP-848)."""
    judgement = Judgement(LIMITS)
    assert judgement.see(seen(Kind.FENCED, ErrorCode.FENCED_INSTANCE_ID), 0) is not None
    epoch = [(0.0, Kind.JOINED), (10.0, Kind.FENCED)]
    assert judged(*epoch, (11.0, Kind.JOINING), until=1000) is None
    assert judged(*epoch, until=1000) is not None


def test_signs_that_are_not_wanted_do_not_count() -> None:
    """Each can be left out."""
    judgement = Judgement(LIMITS, frozenset((Sign.FENCED,)))
    assert judgement.see(seen(Kind.REBALANCE_FAILED), 0) is None


def test_of_the_recorded_clients_those_without_a_coordinator_are_fatal_and_no_other() -> None:
    """Kafka 4.3.1, two brokers of three killed: clients of all kinds that were started during the outage."""
    fatal: set[str] = set()
    fine: set[str] = set()
    for log in unpacked("kafka-4.3.1-coordinator-outage").glob("**/clients/*.during.log"):
        watch, judgement, clock = LogWatch(), Judgement(Limits(lookup_s=20)), Clock()
        now, verdict = 0.0, None
        for line in log.read_text().splitlines():
            head = parse_head(line)
            stamp = clock.read(head.time) if head is not None else None
            now = stamp.at / 1000 if stamp is not None else now
            for sighting in watch.line(line):
                verdict = verdict or judgement.see(sighting, now)
        (fine if verdict is None else fatal).add(log.name.partition(".")[0])
    hit = {18, 126, 130, 213, 216, 293, 53, 8}
    assert fatal == {f"checkout-{number}" for number in hit}
    assert {f"checkout-{number}" for number in (127, 190, 217, 251, 299, 344)} == fine
