"""What a broker's log tells of its groups, word for word as the release wrote it."""

from pathlib import Path

from kelpie.real.cluster import RealCluster
from tests.lab.personas import personas
from tests.lab.personas.cluster import Cluster
from tests.lab.personas.member import Member, assemble, settle, subscription


def _log(cluster: Cluster) -> Path:
    if isinstance(cluster.brokers, RealCluster):
        return cluster.brokers.brokers[0].log
    folder = cluster.brokers.twin.log_folder
    assert folder is not None
    return folder / "broker-1.log"


class Told:
    """The lines that were written about a test's group since it began."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._start = _log(cluster).stat().st_size

    def lines(self) -> list[str]:
        with _log(self._cluster).open("rb") as file:
            file.seek(self._start)
            written = file.read().decode()
        # A line without time belongs to the one above, and a member may be described at length.
        return [
            line.partition("] ")[2]
            for line in written.splitlines()
            if line.startswith("[2") and (self._cluster.group in line or "Static member which" in line)
        ]

    def compare(self, last: str) -> None:
        """When a line with this text is there, all go into the transcript: it is held against the twin's."""
        self._cluster.until(lambda: any(last in line for line in self.lines()))
        self._cluster.transcript.lines += map(self._cluster.transcript.plain, self.lines())


@personas("0.9", "2.8", "3.9", "4.3")
def test_the_log_tells_who_comes_and_goes(cluster: Cluster) -> None:
    """Joins, a leave with its reason, a changed subscription, a leader that rejoins, the end of a group."""
    told = Told(cluster)
    one, two = Member(cluster, "one"), Member(cluster, "two")
    assemble(one, two)
    two.protocols = (("range", subscription("other")),)
    _rejoin(two, one)
    _rejoin(one, two)
    two.leave()
    one.wait_for_state("PreparingRebalance")
    one.join()
    settle(one)
    one.leave()
    told.compare("dead and removed" if cluster.is_first else "is now empty")


def _rejoin(first: Member, other: Member) -> None:
    sent = first.start_join()
    other.wait_for_state("PreparingRebalance")
    again = other.start_join()
    leaders = {first.joined(sent).leader, other.joined(again).leader}
    leader, follower = (first, other) if first.id in leaders else (other, first)
    settle(leader, follower)


@personas("2.8", "3.9", "4.3")
def test_the_log_tells_of_static_members(cluster: Cluster) -> None:
    """One comes back, and the one whose place it took is told off whenever it speaks."""
    told = Told(cluster)
    first, second = f"{cluster.group}-a", f"{cluster.group}-b"
    one, two = Member(cluster, "one", instance=first), Member(cluster, "two", instance=second)
    assemble(one, two)
    again = Member(cluster, "again", instance=second)
    assert again.join().generation_id == 2
    assert two.heartbeat() == 82
    assert two.sync().error_code == two.commit(1) == two.join().error_code == two.leave() == 82
    assert one.leave() == 0
    again.wait_for_state("PreparingRebalance")
    protocols = (("roundrobin", subscription()),)
    changed = Member(cluster, "changed", instance=second, protocols=protocols)
    assert changed.join().error_code == 0
    settle(changed)
    assert changed.leave() == 0
    told.compare("is now empty")


@personas("2.8", "3.9", "4.3")
def test_the_log_tells_of_members_that_are_gone(cluster: Cluster) -> None:
    """A session that ends, and a leader that does not come to the rebalance."""
    told = Told(cluster)
    one = Member(cluster, "one", session_ms=30_000, rebalance_ms=900)
    two = Member(cluster, "two", session_ms=1_000, rebalance_ms=900)
    assemble(one, two)
    one.wait_for_state("PreparingRebalance")
    one.join()
    settle(one)
    three = Member(cluster, "three", session_ms=600, rebalance_ms=900)
    assert three.join().error_code == 0
    settle(three)
    three.wait_for_state("Empty")
    told.compare("is now empty")
