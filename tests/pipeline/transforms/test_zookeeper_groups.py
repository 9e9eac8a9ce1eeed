"""Groups that ZooKeeper keeps: what the recording of real ones does not show, a group for each."""

from datetime import datetime
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kelpie.observations import EventKind as Kind
from kelpie.observations import OwnerNode, Registration, Setting, ZooKeeperGroup
from kelpie.observations.encoding import dumps
from kelpie.pipeline.transforms.zookeeper.attempts import attempts
from kelpie.pipeline.transforms.zookeeper.events import configured
from kelpie.pipeline.transforms.zookeeper.membership import zookeeper_memberships
from kelpie.pipeline.transforms.zookeeper.ownership import ownerships
from kelpie.pipeline.transforms.zookeeper.rebalances import zookeeper_rebalances
from tests.pipeline.rows import NOON, frame
from tests.pipeline.rows import at as written_at
from tests.pipeline.scenes import Rows, Scenes, by_group

SCENES = Scenes()
ODD = "odd_group"
"""Its consumer's id is no usual one, and its log has a number of its session."""
NOON_MS = int(NOON.timestamp()) * 1000


class History(NamedTuple):
    attempts: dict[str, Rows]
    owned: dict[str, Rows]
    members: dict[str, Rows]
    rebalances: dict[str, Rows]


def at(seconds: float) -> datetime:
    """As Spark gives it back."""
    return written_at(seconds).replace(tzinfo=None)


def event(seconds: float, kind: Kind, member: str | None = "a", **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {name: more.pop(name) for name in ("topic", "partition") if name in more}
    return {
        "at": written_at(seconds),
        "line": int(seconds * 10),
        "kind": kind.value,
        "member": member,
        "text": "",
        "details": {name: str(value) for name, value in more.items()},
        **fields,
    }


def rebalanced(seconds: float, member: str, *partitions: str) -> list[dict[str, Any]]:
    """A try that succeeds at once."""
    return [
        event(seconds, Kind.ZK_ATTEMPT, member, attempt=0),
        event(seconds + 0.1, Kind.ZK_RELEASED, member),
        event(seconds + 0.3, Kind.ZK_REBALANCED, member, partitions=",".join(partitions)),
    ]


def counted(seconds: float, member: str, topic: str, *members: str) -> dict[str, Any]:
    threads = ",".join(f"{name}-0" for name in members)
    return event(seconds, Kind.ZK_COMPUTED, member, topic=topic, threads=threads)


def look(group: str, seconds: float, registrations: Any, owners: Any) -> dict[str, Any]:
    row = ZooKeeperGroup(group, tuple(registrations), tuple(owners), at=NOON_MS + int(seconds * 1000))
    return {
        "kind": "zookeeper-group",
        "snapshot": "batch",
        "ordinal": int(seconds),
        "at": written_at(seconds),
        "body": dumps(row),
    }


ODD_SETTING = {
    "kind": "setting",
    "snapshot": "batch",
    "ordinal": 0,
    "body": dumps(Setting("consumer odd_group_my_app", "group.id", ODD, "odd.log:1")),
}
ODD_EVENTS = [
    {**row, "source": "odd.log"}
    for row in (
        event(0, Kind.ZK_SESSION_BEGUN, None, session="0xfa1e143d7d80004e", timeout_ms=6000),
        event(1, Kind.ZK_REGISTERED, "odd_group_my_app"),
        *rebalanced(2, "odd_group_my_app", "t-0"),
        event(55, Kind.ZK_SERVER_EXPIRED, None, session="0xfa1e143d7d80004e", timeout_ms=6000),
    )
]


@pytest.fixture(scope="module")
def history(spark: SparkSession) -> History:
    """All groups at once."""
    server = event(50, Kind.ZK_SERVER_EXPIRED, None, session="0xfa1e143d7d80004f", timeout_ms=6000)
    snapshot = frame(spark, "cluster_snapshot", [*SCENES.rows("cluster_snapshot"), ODD_SETTING])
    told = frame(spark, "log_event", [*SCENES.rows("log_event"), *ODD_EVENTS, server])

    def computed(made: DataFrame) -> DataFrame:
        """Spark plans each step by itself: plans cost more than rows."""
        return spark.createDataFrame(made.collect(), made.schema)

    def told_by(made: DataFrame, order: str) -> dict[str, Rows]:
        return by_group(made.collect(), lambda row: (row[order], str(row)))

    events = computed(configured(told, snapshot))
    tried, owned = computed(attempts(events)), computed(ownerships(events, snapshot))
    members = computed(zookeeper_memberships(events, snapshot, owned))
    known = members.withColumn("first_generation", F.lit(None).cast("int"))
    of_attempts, of_owners = told_by(tried, "began"), told_by(owned, "began")
    of_members = told_by(members, "began")
    of_rebalances = told_by(zookeeper_rebalances(known, tried), "started")
    return History(of_attempts, of_owners, of_members, of_rebalances)


KILLED = SCENES.add(
    "killed",
    log_event=[
        event(0, Kind.ZK_REGISTERED, "a"),
        counted(0.5, "a", "t", "a"),
        event(5, Kind.ZK_REGISTERED, "b"),
        counted(5.5, "b", "t", "a", "b"),
        *rebalanced(6, "b", "t-1"),
        counted(20, "a", "u", "a"),
        counted(40, "a", "t", "a"),
        *rebalanced(41, "a", "t-0", "t-1"),
    ],
)


def test_without_the_log_of_zookeeper_the_others_tell_when_one_was_gone(history: History) -> None:
    """An assignment of a topic that it does not read says nothing of it."""
    a, b = history.members[KILLED]
    assert (a["ended"], a["left_because"]) == (None, None)
    assert (b["ended"], b["left_because"]) == (at(40), "unknown")
    of_b, *of_a = history.owned[KILLED]
    assert (of_b["member_id"], of_b["ended"], of_b["ended_because"]) == ("b", at(41.3), "taken-over")
    assert [(row["partition"], row["ended"], row["evidence"]) for row in of_a] == [
        (0, None, "logs"),
        (1, None, "logs"),
    ]
    assert a["assigned"] == [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]


def test_settings_name_the_group_of_an_unusual_id_and_a_log_the_consumer_of_a_session(
    history: History,
) -> None:
    """The id alone does not show where the group's name ends; the line about a session names nobody."""
    (row,) = history.owned[ODD]
    assert (row["member_id"], row["ended"], row["ended_because"]) == ("odd_group_my_app", at(55), "expired")


CUT = SCENES.add(
    "cut",
    log_event=[
        event(1, Kind.ZK_CONFLICT, topic="t", partition=2, thread="a-0", holder="host-1-0"),
        event(2, Kind.ZK_ATTEMPT_FAILED),
        event(3, Kind.REBALANCE_FAILED, form="watcher", retries=2),
        event(60, Kind.ZK_ATTEMPT, attempt=0),
    ],
)


def test_a_log_that_begins_in_a_try_still_has_its_failure_and_one_that_ends_in_it_leaves_it_open(
    history: History,
) -> None:
    """Logs are rotated, and cut."""
    first, last = history.attempts[CUT]
    assert (first["ordinal"], first["number"], first["outcome"]) == (0, None, "failed")
    assert (first["exception"], first["gave_up"]) == ("watcher", at(3))
    assert [(row["partition"], row["owner"]) for row in first["conflicts"]] == [(2, "host-1")]
    assert (last["ordinal"], last["number"], last["outcome"], last["ended"]) == (1, 0, None, None)


QUIET = SCENES.add(
    "quiet",
    log_event=[
        event(0, Kind.ZK_REGISTERED),
        *rebalanced(1, "a", "t-0"),
        *rebalanced(3, "a", "t-0"),
        event(60, Kind.ZK_ATTEMPT, attempt=0),
        event(60.2, Kind.ZK_NO_BROKERS),
    ],
)


def test_a_rebalance_after_a_long_silence_has_a_cause_of_its_own(history: History) -> None:
    """No member came or went: brokers or partitions may have. One right after another is the same."""
    first, second = history.rebalances[QUIET]
    assert (first["cause"], first["started"], first["ended"]) == ("joined", at(0), at(3.3))
    assert (second["cause"], second["started"], second["ended"]) == ("unknown", at(60), None)
    assert history.attempts[QUIET][-1]["outcome"] == "no-brokers"


SESSION = 0xFA1E143D7D80004F
"""Of a server whose number is high: as a signed number, it is negative."""
EXPIRED = SCENES.add(
    "expired",
    log_event=[event(0, Kind.ZK_REGISTERED), *rebalanced(1, "a", "t-0"), event(70, Kind.ZK_RELEASED)],
    cluster_snapshot=[look("expired", 10, [Registration("a", session=SESSION, created=NOON_MS)], [])],
)


def test_a_dump_says_whose_session_zookeeper_expired(history: History) -> None:
    """The log of the consumer lacks its number. It lets go when it wakes up, long after its node was gone."""
    (owned,) = history.owned[EXPIRED]
    assert (owned["ended"], owned["ended_because"]) == (at(50), "expired")
    (member,) = history.members[EXPIRED]
    assert (member["ended"], member["left_because"]) == (at(50), "expired")


_A = Registration("a", session=1, created=NOON_MS)
_B = Registration("b", session=2, created=NOON_MS + 1000)
_OF_A = OwnerNode("t", 0, "a-0", 1, NOON_MS + 2000)
_OF_B = OwnerNode("t", 1, "b-0", 2, NOON_MS + 3000)
DUMPED = SCENES.add(
    "dumped",
    cluster_snapshot=[
        look("dumped", 10, [_A, _B], [_OF_A, _OF_B]),
        look("dumped", 20, [_A, _B], [_OF_A, _OF_B]),
        look("dumped", 30, [_A], [_OF_A]),
    ],
)


def test_dumps_alone_tell_members_and_owners(history: History) -> None:
    """From when the node was made to the first dump without it; a dump shows no try."""
    a, b = history.members[DUMPED]
    assert (a["began"], a["ended"]) == (at(0), None)
    assert (b["began"], b["ended"], b["left_because"]) == (at(1), at(30), "unknown")
    assert [(row["began"], row["ended"], row["thread"]) for row in history.owned[DUMPED]] == [
        (at(2), None, "a-0"),
        (at(3), at(30), "b-0"),
    ]
    assert {row["evidence"] for row in history.owned[DUMPED]} == {"dumps"}
    assert DUMPED not in history.rebalances
