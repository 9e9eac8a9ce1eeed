"""The way of a group that ZooKeeper keeps: its consumers register, claim partitions, and read on."""

from collections.abc import Sequence

from kelpie.doctor.case import Case
from kelpie.doctor.journey_step import JourneyStep, Passage
from kelpie.doctor.zookeeper.looks import Look, lag_of, looks
from kelpie.doctor.zookeeper.words import places
from kelpie.model.words import counted
from kelpie.observations import ZooKeeperGroup


def steps_in_zookeeper(case: Case) -> list[JourneyStep]:
    """By the last look at each. One look alone shows no fault: it may have caught a rebalance half way."""
    trees = looks(case)
    stored = [row for row in case.zookeeper if row.offsets]
    return [
        _members([row for row in case.zookeeper if row.registrations is not None]),
        _owners(trees[-1] if trees else None),
        _offsets(stored),
        _reading(case, stored),
    ]


def _members(rows: Sequence[ZooKeeperGroup]) -> JourneyStep:
    if not rows:
        text = "Which consumers are registered in ZooKeeper is not known."
        return JourneyStep("members", Passage.UNKNOWN, text)
    registered = rows[-1].members
    if not registered:
        text = "No consumer is registered in ZooKeeper: nobody reads for it now."
        return JourneyStep("members", Passage.UNKNOWN, text)
    text = f"Registered in ZooKeeper: {counted(len(registered), 'consumer')}."
    return JourneyStep("members", Passage.PASSED, text)


def _owners(look: Look | None) -> JourneyStep:
    if look is None or look.expected is None:
        return JourneyStep("owners", Passage.UNKNOWN, "Who must own its partitions is not known.")
    if not look.expected:
        return JourneyStep("owners", Passage.UNKNOWN, "No consumer is there to own a partition.")
    if look.unowned:
        text = f"Without an owner: {places(look.unowned)}."
        return JourneyStep("owners", Passage.UNKNOWN, text)
    if look.orphans:
        text = f"Owned by a consumer that is gone: {places(owner.name for owner in look.orphans)}."
        return JourneyStep("owners", Passage.UNKNOWN, text)
    return JourneyStep("owners", Passage.PASSED, f"Partitions with an owner: {len(look.expected):,}, all.")


def _offsets(rows: Sequence[ZooKeeperGroup]) -> JourneyStep:
    if not rows:
        return JourneyStep("offsets", Passage.UNKNOWN, "ZooKeeper has no offset of it.")
    text = f"ZooKeeper has its offsets in {counted(len(rows[-1].offsets), 'partition')}."
    return JourneyStep("offsets", Passage.PASSED, text)


def _reading(case: Case, rows: Sequence[ZooKeeperGroup]) -> JourneyStep:
    names = [row.name for row in rows[-1].offsets] if rows else []
    dead = [name for name in names if case.cluster.has_leader(name) is False]
    if dead:
        return JourneyStep("reading", Passage.FAILED, f"Without a leader: {places(dead)}.")
    lag = lag_of(case, names)
    if lag is None:
        return JourneyStep("reading", Passage.UNKNOWN, "How far it is behind is not known.")
    return JourneyStep("reading", Passage.PASSED, f"{counted(lag, 'record')} left to read.")
