"""Named scenarios. Each arranges consumers and says what happens to them when; the seed says when exactly.

Broker 1 answers FindCoordinator unless a consumer asks another one, broker 2 coordinates.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kelpie.attribution.addresses import ClientAddress
from kelpie.attribution.simulation.cluster import SimulatedCluster
from kelpie.attribution.simulation.consumer import ConsumerKind
from kelpie.attribution.simulation.group import SESSION_MS

APP = ClientAddress("10.0.0.7", "app")
OTHER = ClientAddress("10.0.0.8", "other")
_SECOND = 1_000


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    what: str
    arrange: Callable[[SimulatedCluster], None]
    seconds: int = 150
    failed_share: float = 0.0
    """Of the requests to the store, so many fail."""


def _restart_of_the_finder(cluster: SimulatedCluster) -> None:
    cluster.group("g")
    cluster.consumer("g", APP, finder=1)
    cluster.agenda.after(_between(cluster, 20, 50), cluster.stop_broker, 1, _between(cluster, 5, 20))


def _reconnect(cluster: SimulatedCluster) -> None:
    cluster.group("g")
    consumer = cluster.consumer("g", APP, finder=1)
    cluster.agenda.after(_between(cluster, 20, 50), consumer.reconnect)
    _move_partitions(cluster, 50, 120)


def _pause(cluster: SimulatedCluster) -> None:
    cluster.group("g")
    consumer = cluster.consumer("g", APP)
    cluster.consumer("g", OTHER)
    cluster.agenda.after(_between(cluster, 20, 50), consumer.pause, SESSION_MS + _between(cluster, -3, 4))
    _move_partitions(cluster, 40, 140)


def _shared_client_id(cluster: SimulatedCluster) -> None:
    cluster.group("g", partitions=cluster.partitions[:2])
    cluster.group("h", coordinator=3, partitions=cluster.partitions[2:])
    first = cluster.consumer("g", APP)
    cluster.consumer("h", APP)
    cluster.agenda.after(_between(cluster, 50, 80), first.close)
    _move_partitions(cluster, 20, 140)


def _shared_client_id_and_partitions(cluster: SimulatedCluster) -> None:
    cluster.group("g", partitions=cluster.partitions[:3])
    cluster.group("h", coordinator=3, partitions=cluster.partitions[1:])
    first = cluster.consumer("g", APP)
    cluster.consumer("h", APP)
    cluster.agenda.after(_between(cluster, 70, 100), first.close)
    _move_partitions(cluster, 20, 140)


def _idle_close(cluster: SimulatedCluster) -> None:
    cluster.idle_close_ms = 540_000
    cluster.group("g")
    cluster.consumer("g", APP, finder=1, every_ms=(8_000, 16_000))
    _move_partitions(cluster, 500, 680)


def _not_rejoined(cluster: SimulatedCluster) -> None:
    """One poll takes too long, a third member comes, and the rebalance ends without the slow one."""
    cluster.group("g")
    cluster.consumer("g", APP)
    stuck = cluster.consumer("g", OTHER)
    stuck_at = _between(cluster, 20, 30)
    cluster.agenda.after(stuck_at, stuck.get_stuck)
    third = ClientAddress("10.0.0.9", "third")
    cluster.agenda.after(stuck_at + _between(cluster, 1, 5), cluster.consumer, "g", third)
    cluster.agenda.after(stuck_at + _between(cluster, 5, 12), stuck.kill)
    _move_partitions(cluster, 40, 140)


def _kill_9(cluster: SimulatedCluster) -> None:
    """Broker and client die at once. A minute later, a consumer without a group has the same client id."""
    cluster.group("g")
    cluster.group("h", coordinator=3)
    victim = cluster.consumer("g", APP, finder=1)
    cluster.consumer("h", OTHER)
    at = _between(cluster, 20, 40)
    cluster.agenda.after(at, victim.kill)
    cluster.agenda.after(at, cluster.kill_broker, 1, 8_000)
    cluster.agenda.after(at, cluster.kill_broker, 2, 8_000)
    cluster.agenda.after(at + 60_000, _stranger, cluster)


def _stranger(cluster: SimulatedCluster) -> None:
    cluster.consumer("", APP, ConsumerKind.HAS_NO_GROUP, partitions=tuple(cluster.partitions))


def _assign_only(cluster: SimulatedCluster) -> None:
    cluster.idle_close_ms = 540_000
    cluster.group("g")
    partitions = tuple(cluster.partitions[:2])
    consumer = cluster.consumer(
        "g", APP, ConsumerKind.ASSIGNS, partitions=partitions, finder=1, every_ms=(8_000, 16_000)
    )
    _move_partitions(cluster, 300, 880)
    cluster.agenda.after(_between(cluster, 890, 899), consumer.close)


def _rolling_restart(cluster: SimulatedCluster) -> None:
    cluster.group("g")
    cluster.consumer("g", APP)
    cluster.consumer("g", OTHER)
    for number in (1, 2, 3):
        at = (10 + 30 * number) * _SECOND + _between(cluster, 0, 5)
        cluster.agenda.after(at, cluster.stop_broker, number, _between(cluster, 5, 20))


def _zombie_coordinator(cluster: SimulatedCluster) -> None:
    cluster.group("g")
    cluster.consumer("g", APP)
    cluster.consumer("g", OTHER)
    cluster.agenda.after(_between(cluster, 20, 40), cluster.pause_broker, 2, _between(cluster, 8, 20))
    _move_partitions(cluster, 40, 140)


def _calm(cluster: SimulatedCluster) -> None:
    """Only partitions move."""
    cluster.group("g")
    cluster.consumer("g", APP)
    cluster.consumer("g", OTHER)
    _move_partitions(cluster, 20, 140, 6)


def _mixed(cluster: SimulatedCluster) -> None:
    """Anything, several times, at any time: two groups, four addresses of which two are shared or not."""
    chance, agenda = cluster.chance, cluster.agenda
    cluster.group("g", coordinator=2)
    cluster.group("h", coordinator=3, partitions=cluster.partitions[:2])
    shared = chance.random() < 0.3
    clients = [("g", APP), ("g", OTHER), ("h", APP if shared else ClientAddress("10.0.0.9", "third"))]
    cluster.idle_close_ms = 60_000 if chance.random() < 0.5 else None
    for group, client in clients:
        cluster.consumer(group, client)
    for _ in range(chance.randrange(2, 6)):
        at = _between(cluster, 15, 140)
        dice = chance.randrange(0, 8)
        if dice == 0:
            agenda.after(at, cluster.stop_broker, chance.randrange(1, 4), _between(cluster, 5, 20))
        elif dice == 1:
            agenda.after(at, cluster.kill_broker, chance.randrange(1, 4), _between(cluster, 5, 20))
        elif dice == 2:
            agenda.after(at, cluster.pause_broker, chance.randrange(1, 4), _between(cluster, 5, 20))
        elif dice == 3:
            name, to = "gh"[chance.randrange(0, 2)], chance.randrange(1, 4)
            agenda.after(at, cluster.move_group, name, to)
        else:
            consumer = cluster.consumers[chance.randrange(0, len(clients))]
            if dice == 4:
                agenda.after(at, consumer.pause, SESSION_MS + _between(cluster, -5, 8))
            elif dice == 5:
                agenda.after(at, consumer.reconnect)
            else:
                agenda.after(at, consumer.close if dice == 6 else consumer.kill)
                back_at = at + _between(cluster, 0, 20)
                agenda.after(back_at, cluster.consumer, consumer.group, consumer.client)
    _move_partitions(cluster, 10, 150, 6)


def _between(cluster: SimulatedCluster, first_s: float, last_s: float) -> float:
    """Milliseconds between two numbers of seconds."""
    return cluster.chance.uniform(first_s * _SECOND, last_s * _SECOND)


def _move_partitions(cluster: SimulatedCluster, first_s: float, last_s: float, times: int = 4) -> None:
    for _ in range(times):
        partition = cluster.partitions[cluster.chance.randrange(0, len(cluster.partitions))]
        cluster.agenda.after(_between(cluster, first_s, last_s), cluster.move, partition)


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "finder-restart", "the broker that answered FindCoordinator restarts", _restart_of_the_finder
        ),
        Scenario("idle-close", "the client closes that idle connection after nine minutes", _idle_close, 700),
        Scenario("reconnect", "the connection to the coordinator breaks, the member stays", _reconnect),
        Scenario("pause", "a member pauses for about its session timeout", _pause),
        Scenario("not-rejoined", "a member does not join again, and then dies", _not_rejoined),
        Scenario("shared-client-id", "two groups, one client id, other partitions", _shared_client_id),
        Scenario(
            "shared-partitions",
            "two groups, one client id, partly the same partitions",
            _shared_client_id_and_partitions,
        ),
        Scenario("kill-9", "brokers and client are killed; a group-less client follows", _kill_9),
        Scenario(
            "assign-only", "a consumer that assigns itself partitions and never joins", _assign_only, 900
        ),
        Scenario("rolling-restart", "all brokers restart, one after the other", _rolling_restart),
        Scenario("zombie-coordinator", "a coordinator is replaced while it pauses", _zombie_coordinator),
        Scenario("failing-store", "the store fails to answer one request in fifty", _calm, 150, 0.02),
        Scenario("mixed", "several of all of these at random times", _mixed, 170, 0.005),
    )
}
