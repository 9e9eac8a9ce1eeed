"""KLP501 to KLP508: each fires, spares its near miss, and says what it lacks."""

from dataclasses import replace

import pytest

from kelpie.doctor.finding import ABSENT, Judgement, Severity
from kelpie.doctor.rules import (
    group_too_large,
    ownership_conflict,
    partition_unowned,
    rebalance_retries_exhausted,
    rules,
    stale_owner,
    timeouts_contradict,
    zombie_owner,
    zookeeper_session_expired,
)
from kelpie.observations import Event, EventKind, ZooKeeperGroup
from tests.doctor.building import MINUTE, NOW, SECOND, found, missing
from tests.doctor.rules.zookeeper_scene import (
    GROUP,
    TOPIC,
    A,
    B,
    C,
    a_zookeeper_case,
    computed,
    failing,
    line,
    look,
    rebalance,
    settings,
)

EARLIER = NOW - 3 * SECOND
GAVE_UP = {A: [], B: [2, 3]}
"""A is registered and owns nothing; partitions 0 and 1 are its own by the range of both members."""


def twice(owned: dict[str, list[int]], **fields: object) -> list[ZooKeeperGroup]:
    return [look(owned, EARLIER, **fields), look(owned, NOW, **fields)]  # type: ignore[arg-type]


# KLP501


def test_a_member_that_stands_with_nothing_has_given_up() -> None:
    """Two looks, nothing changed in ten minutes: no retry lasts that long."""
    finding = found(rebalance_retries_exhausted.judge(a_zookeeper_case(twice(GAVE_UP), ends={0: 100})))
    assert finding.severity is Severity.CRITICAL
    assert finding.members == (A,)
    assert finding.partitions == (f"{TOPIC}-0", f"{TOPIC}-1")
    assert finding.summary == (
        "In group billing, app-1 reads nothing. It gave up rebalancing, because all retries met partitions "
        "that another member still owned."
    )


def test_a_member_without_a_share_is_no_failure() -> None:
    """Three members and two partitions: the third has nothing to do, whatever happens."""
    case = a_zookeeper_case(twice({A: [0], B: [1], C: []}), partitions=2)
    assert rebalance_retries_exhausted.judge(case) is ABSENT


def test_a_member_that_may_still_try_has_not_given_up() -> None:
    """The others claimed their partitions five seconds ago. The default retries take eight."""
    looks = twice(GAVE_UP, claimed=NOW - 5 * SECOND)
    assert missing(rebalance_retries_exhausted.judge(a_zookeeper_case(looks))) != ()
    quick = settings(A, rebalance_max_retries=2, rebalance_backoff_ms=500)
    known = a_zookeeper_case(looks, settings=quick)
    assert found(rebalance_retries_exhausted.judge(known)).members == (A,)


def test_one_look_leaves_it_open() -> None:
    """It may be in the midst of a rebalance."""
    case = a_zookeeper_case([look(GAVE_UP, NOW)])
    assert "second look" in missing(rebalance_retries_exhausted.judge(case))[0]


def test_a_rebalance_between_two_looks_leaves_it_open() -> None:
    """Other owner nodes: somebody has rebalanced, and more may follow."""
    looks = [look(GAVE_UP, EARLIER, claimed=NOW - 9 * SECOND), look(GAVE_UP, NOW, claimed=NOW - SECOND)]
    assert missing(rebalance_retries_exhausted.judge(a_zookeeper_case(looks)))


def test_the_exception_in_a_log_suffices() -> None:
    """Until a later rebalance of that member succeeds, it is so now."""
    events = failing(A, B, NOW - MINUTE, tries=4, gives_up="watcher")
    finding = found(rebalance_retries_exhausted.judge(a_zookeeper_case(events=events)))
    assert (finding.severity, finding.until) == (Severity.CRITICAL, None)
    healed = [*events, *rebalance(A, NOW - 30 * SECOND, [0, 1])]
    over = found(rebalance_retries_exhausted.judge(a_zookeeper_case(events=healed)))
    assert (over.severity, over.until) == (Severity.WARNING, NOW - 30 * SECOND + 100)


# KLP502


def test_conflicts_in_two_tries_are_told_and_one_is_not() -> None:
    """Owners let go one after the other: a single conflict belongs to every rebalance."""
    once = [*failing(A, B, NOW - MINUTE, tries=1), *rebalance(A, NOW - 59 * SECOND, [0])]
    once[4] = replace(once[4], details={"attempt": "1"})
    assert ownership_conflict.judge(a_zookeeper_case(events=once)) is ABSENT
    events = failing(A, B, NOW - MINUTE, tries=3)
    finding = found(ownership_conflict.judge(a_zookeeper_case(events=events)))
    assert finding.summary == (
        "In group billing, app-1 reads nothing: app-2 owned partition 0 of orders, so that every try to "
        "claim it failed."
    )
    assert (finding.severity, finding.partitions) == (Severity.WARNING, (f"{TOPIC}-0",))


def test_an_owner_that_must_not_be_one_stands_in_the_way() -> None:
    """By the range of A and B, partition 0 is A's. B has it, and A has nothing."""
    finding = found(ownership_conflict.judge(a_zookeeper_case(twice({A: [], B: [0, 2, 3]}))))
    assert finding.members == (A,)
    assert ownership_conflict.judge(a_zookeeper_case(twice({A: [0, 1], B: [2, 3]}))) is ABSENT
    assert missing(ownership_conflict.judge(a_zookeeper_case([look({A: [], B: [0, 2, 3]}, NOW)])))


def refusals(*times: int) -> list[Event]:
    return [
        Event(
            EventKind.ZK_SERVER_CONFLICT,
            at,
            "zookeeper.log:1",
            "NodeExists",
            GROUP,
            topic=TOPIC,
            partition=0,
            details={"session": "0xa"},
        )
        for at in times
    ]


def test_what_zookeeper_refuses_twice_in_a_minute_is_a_conflict() -> None:
    """Its log has no names, but the tree says whose session it was."""
    looks = [look({A: [0, 1], B: [2, 3]}, NOW)]
    case = a_zookeeper_case(looks, of_server=refusals(NOW - 9 * SECOND, NOW - 7 * SECOND))
    assert found(ownership_conflict.judge(case)).members == (A,)
    rare = a_zookeeper_case(looks, of_server=refusals(NOW - 9 * MINUTE, NOW - 7 * SECOND))
    assert ownership_conflict.judge(rare) is ABSENT


# KLP503


def test_a_partition_that_nobody_owns_in_two_looks_is_told_with_its_lag() -> None:
    """The committed offset is 40 and the log ends at 100."""
    looks = twice(GAVE_UP, offsets={0: (40, NOW - MINUTE)})
    finding = found(partition_unowned.judge(a_zookeeper_case(looks, ends={0: 100})))
    assert "partitions 0-1 of orders have no owner; 60 records wait there" in finding.summary
    assert finding.check == f"zookeeper-shell.sh ZOOKEEPER:2181 ls /consumers/{GROUP}/owners/{TOPIC}"
    assert finding.severity is Severity.CRITICAL


def test_a_partition_is_briefly_unowned_in_every_rebalance() -> None:
    """In the second look it has an owner; with one look only, it stays open."""
    looks = [look(GAVE_UP, EARLIER), look({A: [0, 1], B: [2, 3]}, NOW)]
    assert partition_unowned.judge(a_zookeeper_case(looks)) is ABSENT
    assert "second look" in missing(partition_unowned.judge(a_zookeeper_case(looks[:1])))[0]
    assert partition_unowned.judge(a_zookeeper_case(twice({}, members=[]))) is ABSENT
    # Two rebalances in a row: others have claimed anew in between, so each look caught another one.
    two = [look(GAVE_UP, EARLIER, claimed=NOW - 9 * SECOND), look(GAVE_UP, NOW, claimed=NOW - SECOND)]
    assert missing(partition_unowned.judge(a_zookeeper_case(two)))


@pytest.mark.parametrize(("pattern", "topic"), [("white_list", "ord.*"), ("black_list", "other")])
def test_topics_by_a_pattern_are_known_by_their_names(pattern: str, topic: str) -> None:
    """As the console consumer subscribes."""
    looks = twice(GAVE_UP, pattern=pattern, topic=topic)
    assert found(partition_unowned.judge(a_zookeeper_case(looks))).partitions == (f"{TOPIC}-0", f"{TOPIC}-1")


@pytest.mark.parametrize("topic", ["(a+)+$", "[", ".*" * 50])
def test_a_pattern_that_is_not_plain_is_not_tried(topic: str) -> None:
    """Anybody may register anything: it must cost neither time nor a traceback."""
    looks = twice(GAVE_UP, pattern="white_list", topic=topic)
    assert missing(partition_unowned.judge(a_zookeeper_case(looks)))


def test_logs_of_all_members_show_a_gap_of_seconds() -> None:
    """A releases partition 0 and gets it back after five seconds; after one, it would be ordinary."""
    names = [A, B]

    def events(gap_ms: int) -> list[Event]:
        return [
            *rebalance(A, NOW - MINUTE, [0, 1]),
            *rebalance(B, NOW - MINUTE, [2, 3]),
            computed(A, NOW - MINUTE, names),
            line(EventKind.ZK_RELEASED, NOW - 30 * SECOND),
            line(EventKind.ZK_REBALANCED, NOW - 30 * SECOND + gap_ms, partitions=f"{TOPIC}-0,{TOPIC}-1"),
        ]

    finding = found(partition_unowned.judge(a_zookeeper_case(events=events(5_000))))
    assert (finding.since, finding.until) == (NOW - 30 * SECOND, NOW - 25 * SECOND)
    assert partition_unowned.judge(a_zookeeper_case(events=events(1_000))) is ABSENT
    alone = [event for event in events(5_000) if event.member == A]
    assert missing(partition_unowned.judge(a_zookeeper_case(events=alone)))


# KLP504


def test_retries_that_end_before_the_session_does_contradict_it() -> None:
    """(4 − 1) × 2000 = 6000 ms, and the session lasts 30 s."""
    rows = settings(A, zookeeper_session_timeout_ms=30_000)
    finding = found(timeouts_contradict.judge(a_zookeeper_case(twice({A: [0, 1, 2, 3]}), settings=rows)))
    assert "retries of a rebalance end 6 s after the first try" in finding.summary
    both = [
        *settings(A, zookeeper_session_timeout_ms=30_000),
        *settings(B, zookeeper_session_timeout_ms=30_000),
    ]
    case = a_zookeeper_case(twice({A: [0, 1], B: [2, 3]}), settings=both)
    summary = found(timeouts_contradict.judge(case)).summary
    assert "both consumers may stop reading when another member dies" in summary
    assert "rebalance.max.retries=17" in finding.remedies[0].text
    assert finding.severity is Severity.WARNING


def test_the_folk_rule_promises_too_much() -> None:
    """4 × 2000 ms is more than 7000 ms, but nothing is tried after the last sleep."""
    near = settings(A, zookeeper_session_timeout_ms=7_000)
    assert found(timeouts_contradict.judge(a_zookeeper_case(twice({A: [0]}), settings=near)))
    for enough in (settings(A), settings(A, rebalance_max_retries=10, zookeeper_session_timeout_ms=18_000)):
        assert timeouts_contradict.judge(a_zookeeper_case(twice({A: [0]}), settings=enough)) is ABSENT


def test_without_settings_nothing_is_said_about_them() -> None:
    """Defaults are not assumed of a consumer of which nothing is known."""
    assert "settings" in missing(timeouts_contradict.judge(a_zookeeper_case(twice({A: [0]}))))[0]


# KLP505


def test_an_owner_that_is_not_registered_is_stale() -> None:
    """In both looks. In one, the registration may have been read a moment before it came."""
    looks = twice({A: [0, 1], B: [2, 3]}, members=[A])
    finding = found(stale_owner.judge(a_zookeeper_case(looks)))
    assert (finding.members, finding.partitions) == ((B,), (f"{TOPIC}-2", f"{TOPIC}-3"))
    assert finding.check.endswith(f" get /consumers/{GROUP}/owners/{TOPIC}/2")
    assert "are read by nobody: the owner is dead, stopped or cut off (app-2)." in finding.summary
    assert missing(stale_owner.judge(a_zookeeper_case(looks[:1])))
    assert stale_owner.judge(a_zookeeper_case(twice({A: [0, 1], B: [2, 3]}))) is ABSENT


def test_an_owner_node_of_the_members_own_old_session_is_stale() -> None:
    """It is accepted as the member's own, and vanishes with the old session."""
    looks = twice({A: [0, 1, 2, 3]}, sessions={A: 0xAA})
    assert found(stale_owner.judge(a_zookeeper_case(looks))).members == (A,)


def expired(at: int, kind: EventKind = EventKind.ZK_SERVER_EXPIRED) -> Event:
    return Event(kind, at, "zookeeper.log:9", "a line", details={"session": "0xb", "timeout_ms": "6000"})


def test_a_session_that_expires_while_it_owns_partitions_was_stale() -> None:
    """Nothing was heard for the six seconds before. A session without partitions harms nobody."""
    looks = [look({A: [0, 1], B: [2, 3]}, NOW - 7 * SECOND)]
    case = a_zookeeper_case(looks, of_server=[expired(NOW - 5 * SECOND)])
    finding = found(stale_owner.judge(case))
    assert (finding.since, finding.until) == (NOW - 11 * SECOND, NOW - 5 * SECOND)
    assert finding.severity is Severity.NOTICE
    idle = [look({A: [0, 1, 2, 3], B: []}, NOW - 7 * SECOND)]
    assert stale_owner.judge(a_zookeeper_case(idle, of_server=[expired(NOW - 5 * SECOND)])) is ABSENT


# KLP506


def test_a_member_that_says_so_has_lived_through_its_expiry() -> None:
    """Until it has rebalanced it reads nothing."""
    events = [line(EventKind.ZK_SESSION_EXPIRED, NOW - MINUTE)]
    assert (
        found(zookeeper_session_expired.judge(a_zookeeper_case(events=events))).severity is Severity.CRITICAL
    )
    healed = [*events, *rebalance(A, NOW - 50 * SECOND, [0])]
    finding = found(zookeeper_session_expired.judge(a_zookeeper_case(events=healed)))
    assert (finding.severity, finding.until) == (Severity.WARNING, NOW - 50 * SECOND + 100)


def test_a_member_that_died_is_no_expired_one() -> None:
    """Its session expires, too. It is one if ZooKeeper's log has it come back."""
    looks = [look({A: [0, 1], B: [2, 3]}, NOW - 7 * SECOND)]
    died = a_zookeeper_case(looks, rebalance(A, NOW - MINUTE, [0]), of_server=[expired(NOW - 5 * SECOND)])
    assert zookeeper_session_expired.judge(died) is ABSENT
    back = [expired(NOW - 5 * SECOND), expired(NOW - 2 * SECOND, EventKind.ZK_SERVER_RETURNED)]
    assert found(zookeeper_session_expired.judge(a_zookeeper_case(looks, of_server=back))).members == (B,)


def test_the_same_id_in_another_session_was_expired() -> None:
    """From the tree alone. One look cannot show it."""
    looks = [look({A: [0]}, EARLIER), look({A: [0]}, NOW, sessions={A: 0xAA})]
    assert found(zookeeper_session_expired.judge(a_zookeeper_case(looks))).members == (A,)
    assert missing(zookeeper_session_expired.judge(a_zookeeper_case(looks[:1])))


# KLP508


def test_a_connector_that_failed_at_its_start_and_goes_on_claims_for_nobody() -> None:
    """The application has caught the exception. After one in the watcher, the streams are read as before."""
    for form, is_zombie in (("start-up", True), ("watcher", False)):
        events = [
            *failing(A, B, NOW - MINUTE, tries=2, gives_up=form),
            *rebalance(A, NOW - 30 * SECOND, [0]),
        ]
        judgement = zombie_owner.judge(a_zookeeper_case(events=events))
        assert (judgement is not ABSENT) is is_zombie
        if is_zombie:
            assert found(judgement).members == (A,)
    closed = [
        *failing(A, B, NOW - MINUTE, tries=2, gives_up="start-up"),
        line(EventKind.ZK_CLOSED, NOW - 50 * SECOND),
    ]
    assert zombie_owner.judge(a_zookeeper_case(events=closed)) is ABSENT


def zombie(offset_of_a: tuple[int, int], end: int = 100) -> Judgement:
    """A has owned partition 0 for ten minutes, and B writes its offsets."""
    offsets = {0: offset_of_a, 2: (7, NOW - SECOND)}
    looks = twice({A: [0, 1], B: [2, 3]}, offsets=offsets)
    return zombie_owner.judge(a_zookeeper_case(looks, ends={0: end, 2: 7}))


def test_an_owner_that_writes_no_offset_while_records_wait_reads_nothing() -> None:
    """Written before it claimed: not its own. With nothing to read, or a newer offset, all is well."""
    finding = found(zombie((40, NOW - 700 * SECOND)))
    assert (finding.members, finding.partitions) == ((A,), (f"{TOPIC}-0",))
    assert "60 records wait there" in finding.summary
    assert zombie((40, NOW - 700 * SECOND), end=40) is ABSENT
    assert zombie((40, NOW - 500 * SECOND)) is ABSENT


def test_a_group_that_keeps_no_offsets_in_zookeeper_has_no_zombies() -> None:
    """offsets.storage=kafka: nobody writes them there, so silence means nothing."""
    looks = twice({A: [0, 1], B: [2, 3]}, offsets={0: (40, NOW - 700 * SECOND)})
    assert zombie_owner.judge(a_zookeeper_case(looks, ends={0: 100})) is ABSENT


def test_without_the_ends_of_the_logs_an_idle_owner_is_undetermined() -> None:
    """It may have nothing to read. An owner that has written since is well, whatever the end is."""
    owners, theirs = {A: [0, 1], B: [2, 3]}, (7, NOW - SECOND)
    idle = twice(owners, offsets={0: (40, NOW - 700 * SECOND), 2: theirs})
    assert "end" in missing(zombie_owner.judge(a_zookeeper_case(idle)))[0]
    busy = twice(owners, offsets={0: (40, NOW - 500 * SECOND), 2: theirs})
    assert zombie_owner.judge(a_zookeeper_case(busy)) is ABSENT


def test_one_look_at_owners_leaves_zombies_open() -> None:
    """They may be in the midst of a rebalance."""
    assert missing(zombie_owner.judge(a_zookeeper_case([look({A: [0]}, NOW)])))


# KLP507


def a_group_of(size: int, **values: int) -> Judgement:
    """With two partitions for each member, and the settings of all of them known."""
    names = [f"{GROUP}_app-{number:02}" for number in range(size)]
    owned = {name: [2 * number, 2 * number + 1] for number, name in enumerate(names)}
    rows = [row for name in names for row in settings(name, **values)]
    sessions = {name: number + 1 for number, name in enumerate(names)}
    looks = [look(owned, NOW, sessions=sessions)]
    return group_too_large.judge(a_zookeeper_case(looks, partitions=2 * size, settings=rows))


def test_a_large_group_with_the_default_retries_is_too_large() -> None:
    """Sixteen consumers, each killed and started once: in two rounds of five a rebalance fails."""
    finding = found(a_group_of(16))
    assert "has 16 consumers" in finding.summary
    assert "42 %" in finding.summary
    assert "rebalance.max.retries=5" in finding.remedies[0].text
    assert finding.severity is Severity.NOTICE


def test_a_small_group_and_one_with_more_retries_are_not_too_large() -> None:
    """By the same formula. Retries that end before the session does are told as KLP504."""
    assert a_group_of(8) is ABSENT
    assert a_group_of(16, rebalance_max_retries=6) is ABSENT
    assert a_group_of(16, zookeeper_session_timeout_ms=30_000) is ABSENT


def test_without_settings_no_size_is_too_large() -> None:
    """The chance depends on them as much as on the size."""
    assert missing(group_too_large.judge(a_zookeeper_case(twice({A: [0, 1], B: [2, 3]}))))


# All


def test_without_anything_about_a_group_every_rule_says_what_it_lacks() -> None:
    """Only its offsets are there: too little data is never the same as all is well."""
    case = a_zookeeper_case([ZooKeeperGroup(GROUP, at=NOW)])
    for rule in rules().values():
        if rule.of_zookeeper and rule.judge is not None:
            assert missing(rule.judge(case)), rule.code


def test_a_healthy_group_is_silent() -> None:
    """Two looks, logs of two members, settings that fit."""
    events = [*rebalance(A, NOW - MINUTE, [0, 1]), *rebalance(B, NOW - MINUTE, [2, 3])]
    fitting = [*settings(A), *settings(B)]
    case = a_zookeeper_case(twice({A: [0, 1], B: [2, 3]}), events, settings=fitting)
    for rule in rules().values():
        if rule.of_zookeeper and rule.judge is not None:
            assert rule.judge(case) is ABSENT, rule.code
