"""What happens to a cluster and its groups, and what the doctor may say of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kelpie.observations import Observations
from kelpie.observations.earlier import EARLIER_SURVEY
from tests.doctor.matrix.kinds import (
    ARCHIVE,
    INVOICES,
    OLD_GROUP,
    OTHERS,
    READERS,
    RELEASES,
    SHARE,
    STREAMS,
    TOPIC,
)
from tests.doctor.matrix.world import PARTITIONS, World

_WITH_RECORDS = (READERS | OTHERS) - {"quiet", "connect"}
"""For which records are written all the time."""
_ALL = frozenset(RELEASES)
_PAUSE_S = 4.0
Codes = Mapping[str, frozenset[str | None]]
"""Code → groups; None: the cluster."""


@dataclass(frozen=True, slots=True)
class Situation:
    name: str
    act: Callable[[World], None]
    on_the_way: Codes = field(default_factory=dict)
    """Code → groups (None: the cluster) of which the doctor may say it at some moments, above a notice.
    Healthy: of none. What the doctor explains by another finding does not count.
    """
    at_the_end: Codes = field(default_factory=dict)
    """Code → exactly the groups of which the doctor says it at the last moment, if only as a notice: members
    of librdkafka leave a group whose topic is gone, and then it is one.
    """
    proven: Callable[[Observations], Codes] | None = None
    """In place of `at_the_end`: what follows from what was seen at the last moment, worked out without rules.
    """
    may_be_over: frozenset[str] = frozenset()
    """Groups that may have got over it by themselves at the last moment, or for which nothing is written any
    more: the transactional group writes what the group "committed" reads.
    """
    releases: frozenset[str] = _ALL
    spoils: bool = False
    """Another situation cannot follow on the same cluster."""
    prepare: Callable[[World], None] = lambda _: None
    """Before anybody looks."""
    clock_ahead_ms: int = 0
    """By how much the clock of the doctor's machine is ahead of those of the brokers."""
    by_auditor: bool = False
    """The doctor logs in as a user who may not see everything."""
    hidden: frozenset[str] = frozenset()
    """Groups that this user does not see."""


def quiet_run(world: World) -> None:
    world.let_pass(12)


def rolling_restart(world: World) -> None:
    for node in ("1", "2", "3"):
        world.cluster.stop(node)
        world.cluster.start(node)
        world.until_whole()
    world.let_pass(4)


def broker_killed(world: World) -> None:
    """Killed, away for a while, and back."""
    world.cluster.kill("2")
    world.let_pass(8)
    world.cluster.start("2")
    world.until_whole()
    world.let_pass(4)


def member_redeployed(world: World) -> None:
    """Each of the two in its turn, as a deployment does it."""
    for number in (0, 1):
        world.retire(number)
        world.let_pass(2)
        world.deploy(number)
        world.let_pass(6)


def member_paused(world: World) -> None:
    """Shorter than a session, again and again: a long garbage collection, or a machine that is moved."""
    for _ in range(3):
        world.pause(1, _PAUSE_S)
        world.let_pass(5)


def partitions_added(world: World) -> None:
    world.add_partitions(TOPIC, PARTITIONS + 2)
    world.let_pass(14)


def topic_deleted(world: World) -> None:
    world.delete(TOPIC)
    world.let_pass(14)


def topic_created_again(world: World) -> None:
    world.delete(TOPIC)
    world.create(TOPIC)
    world.let_pass(14)


def all_stopped(world: World) -> None:
    """No member runs any more, for longer than any session; a transaction stays open until its timeout.

    Brokers before 3.0 do not tell when the newest record was written, so that clocks cannot be compared:
    there, looks alone must prove a minute of silence. The store keeps fewer of them the older they are.
    """
    for number in (0, 1):
        world.stop(number)
    world.let_pass(110 if world.cluster.release.version == "2.8.2" else 60)


def broker_replaced(world: World) -> None:
    """By a new machine with an empty disk."""
    world.cluster.kill("3")
    world.let_pass(5)
    world.cluster.renew("3")
    world.until_whole()
    world.let_pass(4)


def broker_exchanged(world: World) -> None:
    """It is gone for good. A new one with another id takes over its replicas."""
    world.cluster.kill("3")
    world.let_pass(3)
    world.cluster.add("4")
    world.let_pass(2)
    world.replace_broker(3, 4)
    world.let_pass(5)


def throttled(world: World) -> None:
    """By a quota that leaves clients a little more than what is written for them."""
    world.cluster.limit_fetching(2000)
    world.let_pass(16)
    world.cluster.limit_fetching(None)
    world.let_pass(2)


_HIDDEN = frozenset({"eager", "static", SHARE, OLD_GROUP})
"""Groups that the auditor may not describe."""
_OF_HIDDEN_TOPICS = frozenset({"compacted", STREAMS})


def allow_auditor(world: World) -> None:
    """Not to see everything: four groups, topics of two others, and the history of commits are missing."""
    world.allow_auditor(world.kinds - _HIDDEN, (TOPIC, INVOICES, ARCHIVE, "__consumer_offsets"))


def in_the_old_topic(rows: Observations) -> Codes:
    """Groups that stand where the new topic has no records yet. Some consumers notice that it is another one,
    and begin anew: it depends on when they asked for topics.
    """
    ends = {row.name: row.latest for row in rows.ends if row.topic == TOPIC and row.source != EARLIER_SURVEY}
    committed = (row for row in rows.all_committed if row.topic == TOPIC and row.source != EARLIER_SURVEY)
    return {"KLP314": frozenset(row.group for row in committed if row.offset > ends[row.name])}


SITUATIONS = {
    situation.name: situation
    for situation in (
        Situation("quiet-run", quiet_run),
        Situation("member-paused", member_paused),
        Situation("member-redeployed", member_redeployed),
        Situation("throttled", throttled),
        Situation("clock-ahead", quiet_run, clock_ahead_ms=90_000),
        Situation("clock-behind", quiet_run, clock_ahead_ms=-90_000),
        Situation(
            "without-rights",
            quiet_run,
            {"KLP107": _HIDDEN | _OF_HIDDEN_TOPICS},
            {"KLP107": _HIDDEN | _OF_HIDDEN_TOPICS},
            prepare=allow_auditor,
            by_auditor=True,
            hidden=_HIDDEN | _OF_HIDDEN_TOPICS,
        ),
        Situation("partitions-added", partitions_added, spoils=True),
        Situation("rolling-restart", rolling_restart),
        Situation("broker-killed", broker_killed),
        Situation("broker-replaced", broker_replaced),
        Situation("broker-exchanged", broker_exchanged, spoils=True),
        Situation(
            "topic-deleted",
            topic_deleted,
            {"KLP315": READERS, "KLP207": frozenset({SHARE})},
            {"KLP315": READERS, "KLP207": frozenset({SHARE})},
            spoils=True,
        ),
        Situation(
            "topic-created-again",
            topic_created_again,
            {"KLP314": READERS, "KLP315": READERS, "KLP207": frozenset({SHARE})},
            proven=in_the_old_topic,
            spoils=True,
        ),
        Situation(
            "all-stopped",
            all_stopped,
            {"KLP310": _WITH_RECORDS, "KLP307": frozenset({"transactional"})},
            {"KLP310": _WITH_RECORDS},
            may_be_over=frozenset({"committed"}),
            spoils=True,
        ),
    )
}


def chosen(codes: Codes, kinds: frozenset[str]) -> dict[str, set[str | None]]:
    """The same, of the groups that there are."""
    there = {*kinds, OLD_GROUP, None}
    return {code: {group for group in groups if group in there} for code, groups in codes.items()}
