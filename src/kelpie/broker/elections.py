"""Elections: pure functions from one state of a partition to the next.

They follow Kafka's PartitionChangeBuilder. With eligible leader replicas (KIP-966, Kafka 4) an ISR may become
empty; members that leave an ISR below min.insync.replicas are eligible to lead later, for nothing is
committed without them. Before, the last member stays in the ISR of a partition without a leader.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from kelpie.broker.image import NO_LEADER, PartitionImage


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of an election: living brokers, and what the topic's settings and the release allow."""

    alive: Collection[int]
    min_isr: int = 1
    keeps_elr: bool = False
    unclean: bool = False


def without(state: PartitionImage, node: int, rules: Rules) -> PartitionImage:
    """A broker is lost. Its partitions get another leader from the ISR, or none."""
    isr = tuple(member for member in state.isr if member != node)
    if not isr and not rules.keeps_elr:
        isr = state.isr
    if state.leader == NO_LEADER:
        rules = replace(rules, alive=())  # The loss of a broker does not give it a leader.
    return _settled(state, isr, rules) if state.leader == node or isr != state.isr else state


def crashed(state: PartitionImage, node: int, rules: Rules) -> PartitionImage:
    """A broker comes back after a crash: it may have lost records, so it is not eligible."""
    if not rules.keeps_elr or (node not in state.isr and node not in state.elr):
        return state
    isr = tuple(member for member in state.isr if member != node)
    return _settled(state, isr, rules, suspect=node)


def elect(state: PartitionImage, rules: Rules) -> PartitionImage:
    """Chooses a leader, if the one there is cannot lead: the first replica in order that is alive and may.

    Unclean, any replica that is alive will do; what it lacks is lost, and it is the whole ISR from then on.
    """
    return _settled(state, state.isr, rules)


def prefer(state: PartitionImage, alive: Collection[int]) -> PartitionImage:
    """Gives the lead to the first replica, if it is alive and in sync."""
    first = state.replicas[0]
    if first == state.leader or first not in state.isr or first not in alive:
        return state
    return _led_by(state, first)


def with_isr(state: PartitionImage, isr: Collection[int], rules: Rules) -> PartitionImage:
    """The leader reports the replicas that are in sync."""
    return _settled(state, ordered(state, isr), rules)


def ordered(state: PartitionImage, isr: Collection[int]) -> tuple[int, ...]:
    """A replica that stays keeps its place; one that comes back goes to the end, in every release."""
    kept = tuple(node for node in state.isr if node in isr)
    return (*kept, *(node for node in state.replicas if node in isr and node not in kept))


def leaderless(state: PartitionImage) -> PartitionImage:
    """No replica leads the partition, though some live."""
    return state if state.leader == NO_LEADER else _led_by(state, NO_LEADER)


def moved(
    state: PartitionImage, replicas: tuple[int, ...], isr: tuple[int, ...], rules: Rules
) -> PartitionImage:
    """The reassignment is over, and these are the replicas. If one is gone, a new epoch fences it."""
    shrunk = not set(state.replicas) <= set(replicas)
    moved = replace(state, replicas=replicas, adding=(), removing=())
    done = _settled(moved, isr, rules)
    if shrunk and done.leader_epoch == state.leader_epoch:
        done = replace(done, leader_epoch=state.leader_epoch + 1)
    return done if done.partition_epoch != state.partition_epoch else _changed(done)


def _settled(
    state: PartitionImage, isr: tuple[int, ...], rules: Rules, suspect: int | None = None
) -> PartitionImage:
    """The ISR becomes `isr`; whatever follows for the eligible replicas and for the leader."""
    elr: tuple[int, ...] = ()
    if rules.keeps_elr and len(isr) < min(rules.min_isr, len(state.replicas)):
        left = (set(state.elr) | set(state.isr)) - set(isr) - {suspect}
        elr = tuple(sorted(left & set(state.replicas)))
    leader, clean = _choose(state, isr, elr, rules)
    if leader not in isr and leader != NO_LEADER:
        elr = tuple(node for node in elr if node != leader) if clean else ()
        isr = (leader,)
    last = () if leader != NO_LEADER else state.last_leader
    if rules.keeps_elr and not isr and state.leader != NO_LEADER:
        last = (state.leader,)
    after = replace(state, isr=isr, elr=elr, last_leader=last)
    if leader != state.leader:
        return _led_by(after, leader)
    return state if after == state else _changed(after)


def _choose(
    state: PartitionImage, isr: tuple[int, ...], elr: tuple[int, ...], rules: Rules
) -> tuple[int, bool]:
    """The leader, and whether no record is lost."""
    alive = rules.alive
    safe = isr or elr
    for node in (state.leader, *state.replicas):
        if node in safe and node in alive:
            return node, True
    # No replica surely has every record, so the last leader is the best guess.
    if rules.keeps_elr and not safe and len(state.last_leader) == 1 and state.last_leader[0] in alive:
        return state.last_leader[0], False
    if rules.unclean:
        for node in state.replicas:
            if node in alive:
                return node, False
    return NO_LEADER, True


def _led_by(state: PartitionImage, node: int) -> PartitionImage:
    return _changed(replace(state, leader=node, leader_epoch=state.leader_epoch + 1))


def _changed(state: PartitionImage) -> PartitionImage:
    return replace(state, partition_epoch=state.partition_epoch + 1)
