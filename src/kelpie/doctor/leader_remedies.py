"""How a partition without a leader gets one again, without losing records."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kelpie.cluster import ClusterView, commands
from kelpie.cluster.health import UNCLEAN, succession_in
from kelpie.doctor.finding import Remedy
from kelpie.doctor.position_words import some
from kelpie.model.words import listed
from kelpie.observations import PartitionView

_MOST_REMEDIES = 4


def leader_remedies(cluster: ClusterView, views: Sequence[PartitionView]) -> list[Remedy]:
    """For partitions that have no leader; those with the same remedy share it."""
    by_remedy: dict[Remedy, list[PartitionView]] = {}
    for view in views:
        for remedy in _of(cluster, view):
            by_remedy.setdefault(remedy, []).append(view)
    if all(len(sharing) == len(views) for sharing in by_remedy.values()):
        return list(by_remedy)
    return [
        replace(remedy, text=f"{some([view.name for view in sharing])}: {remedy.text}")
        for remedy, sharing in list(by_remedy.items())[:_MOST_REMEDIES]
    ]


def _of(cluster: ClusterView, view: PartitionView) -> list[Remedy]:
    heirs = succession_in(cluster, view)
    if not heirs.complete:
        return _unknown(cluster, view)
    remedies = []
    if heirs.ready:
        elect = commands.kelpie("elect", cluster, name=view.name)
        text = f"Broker {listed(heirs.ready, 'or')} runs and has all records. Elect it: nothing is lost."
        remedies.append(Remedy(text, elect))
    if heirs.to_start:
        rest = [node for node in heirs.incomplete if not cluster.is_alive(node)]
        lacking = f" Broker {listed(rest, 'or')} alone would not be elected." if rest else ""
        may = "it may lead" if len(heirs.to_start) == 1 else "each may lead"
        start = f"Start broker {listed(sorted(heirs.to_start), 'or')}: {may}, and nothing is lost."
        text = start + ("" if heirs.allows_unclean else lacking)
        remedies.append(Remedy(text, said_by=said_by(cluster, heirs.to_start)))
    if heirs.offline:
        them = (
            f"Broker {listed(heirs.offline)} runs, but the log directory with this partition is offline there"
        )
        remedies.append(
            Remedy(f"{them}. Bring that disk back: it has all records, and nothing is lost then.")
        )
    if heirs.allows_unclean and heirs.incomplete:
        remedies.append(
            Remedy(
                f"{UNCLEAN} is true here: broker {listed(heirs.incomplete, 'or')} is elected as soon as it "
                "runs, and records that it lacks are lost. Keep it stopped until a complete one leads."
            )
        )
    return remedies


def _unknown(cluster: ClusterView, view: PartitionView) -> list[Remedy]:
    """Nobody says which replicas were in sync."""
    away = [node for node in view.replicas if not cluster.is_alive(node)]
    if not away:
        return []
    said = said_by(cluster, away)
    if len(view.replicas) == 1:
        only = f"Start broker {away[0]}: it has the only replica, and nothing is lost."
        return [Remedy(only, said_by=said)]
    text = f"Start brokers {listed(away)}: the one that was in sync last leads again."
    return [Remedy(text, said_by=said)]


def said_by(cluster: ClusterView, nodes: Iterable[int]) -> str:
    """The code of the finding that says already that these brokers must be started; empty if there is none.

    KLP100 names all dead brokers, and says with which to begin.
    """
    return "KLP100" if all(cluster.is_alive(node) is False for node in nodes) else ""
