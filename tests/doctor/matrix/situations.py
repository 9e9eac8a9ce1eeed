"""What happens to a cluster and its groups, and what the doctor may say of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.doctor.matrix.members import TOPIC
from tests.doctor.matrix.world import PARTITIONS, World

READERS = frozenset({"eager", "cooperative", "static", "kip848", "manual", "transactional"})
"""The kinds of groups. All of them read the same topic."""
OTHERS = frozenset({"committed", "compacted", "quiet"})
"""They read a topic written in transactions, a compacted one with gaps, and a quiet one."""
KINDS_OF_GROUPS = READERS | OTHERS
_WITH_RECORDS = KINDS_OF_GROUPS - {"quiet"}
"""For which records are written all the time."""


@dataclass(frozen=True, slots=True)
class Situation:
    name: str
    act: Callable[[World], None]
    on_the_way: Mapping[str, frozenset[str | None]] = field(default_factory=dict)
    """Code → groups (None: the cluster) of which the doctor may say it at some moments, above a notice.
    Healthy: of none. What the doctor explains by another finding does not count.
    """
    at_the_end: Mapping[str, frozenset[str | None]] = field(default_factory=dict)
    """Code → exactly the groups of which the doctor says it at the last moment, if only as a notice: members
    of librdkafka leave a group whose topic is gone, and then it is one.
    """
    known_fault: str = ""
    """What the doctor still says wrongly of the recording, and why."""


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
    """For a few seconds, twice: a long garbage collection, or a machine that is moved."""
    for _ in range(2):
        world.pause(1)
        world.let_pass(3)
        world.resume(1)
        world.let_pass(6)


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
    """No member runs any more, for longer than any session; a transaction stays open until its timeout."""
    for number in (0, 1):
        world.pause(number)
    world.let_pass(60)


SITUATIONS = {
    situation.name: situation
    for situation in (
        Situation("quiet-run", quiet_run),
        Situation("rolling-restart", rolling_restart),
        Situation("broker-killed", broker_killed),
        Situation("member-redeployed", member_redeployed),
        Situation("member-paused", member_paused),
        Situation("partitions-added", partitions_added),
        Situation("topic-deleted", topic_deleted, {"KLP315": READERS}, {"KLP315": READERS}),
        Situation("topic-created-again", topic_created_again, {"KLP314": READERS}, {"KLP314": READERS}),
        Situation(
            "all-stopped",
            all_stopped,
            {"KLP310": _WITH_RECORDS, "KLP307": frozenset({"transactional"})},
            {"KLP310": _WITH_RECORDS},
        ),
    )
}
