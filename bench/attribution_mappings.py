"""The mapping check of 20,000 members on a real ZooKeeper, against one get for each member.

Both get the members as values, as a coordinator has them; asking brokers for them costs both the same. The
peer looks for missing nodes only, one after the other, as the document's third plan does. They take turns.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.measure import Ratio
from kelpie.attribution.addresses import KOP_ROOT, ClientAddress, mapping_path
from kelpie.attribution.reconciliation import MappedMember, reconcile
from kelpie.client.mapping_store import opened
from kelpie.client.zookeeper import connected, kazoo_exceptions
from kelpie.real.zookeeper import RealZooKeeper

MEMBERS = 20_000
GROUPS = 500
MISSING, WRONG = 40, 20
ROUNDS = 3
PEER = "one get for each member"
_LIMIT_S = 120.0


def measure() -> tuple[list[list[str]], list[Ratio]]:
    """Rows of a table, and the ratio."""
    members = [_member(number) for number in range(MEMBERS)]
    with RealZooKeeper() as server:
        _fill(server.connect, members)
        contenders: dict[str, Callable[[], int]] = {
            "Kelpie: list, read with multiRead, compare": lambda: _check(server.connect, members),
            "a get for each member, 1,000 under way": lambda: _pipelined(server.connect, members),
            PEER: lambda: _one_by_one(server.connect, members),
        }
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(ROUNDS):
            for name, check in contenders.items():
                begun = time.perf_counter()
                differences = check()
                seconds[name].append(time.perf_counter() - begun)
                assert differences in (MISSING, MISSING + WRONG), differences
    ours, *_, peer = seconds
    median = {name: statistics.median(times) for name, times in seconds.items()}
    rows = [[name, f"{took:.2f}", f"{median[peer] / took:.1f}"] for name, took in median.items()]
    return rows, [Ratio("mapping-check-20000", median[peer] / median[ours], PEER)]


def _member(number: int) -> MappedMember:
    host = f"10.{number // 62_500}.{number // 250 % 250}.{number % 250}"
    return MappedMember(f"group-{number % GROUPS}", f"m-{number}", ClientAddress(host, f"consumer-{number}"))


def _paths(members: Sequence[MappedMember]) -> list[str]:
    return [path for member in members if (path := mapping_path(member.client)) is not None]


def _fill(hosts: str, members: Sequence[MappedMember]) -> None:
    """A node for each member but the first few; some name another group."""
    with connected(hosts, _LIMIT_S, of_kafka=False) as client:
        client.create(KOP_ROOT, b"")
        nodes = list(zip(_paths(members), members, strict=True))[MISSING:]
        for start in range(0, len(nodes), 500):
            transaction = client.transaction()
            for number, (path, member) in enumerate(nodes[start : start + 500], start):
                group = "group-0" if 1 <= number <= WRONG else member.group
                transaction.create(path, group.encode())
            transaction.commit()


def _check(hosts: str, members: Sequence[MappedMember]) -> int:
    with opened(hosts, _LIMIT_S) as store:
        tree = store.tree(KOP_ROOT) or {}
    listing = {path: node.value.decode("utf-8", "replace") for path, node in tree.items()}
    differences = reconcile(members, listing, {}, 0, 0)
    return len(differences.missing) + len(differences.wrong)


def _pipelined(hosts: str, members: Sequence[MappedMember]) -> int:
    paths, missing = _paths(members), 0
    with connected(hosts, _LIMIT_S, of_kafka=False) as client:
        for start in range(0, len(paths), 1_000):
            answers = [client.get_async(path) for path in paths[start : start + 1_000]]
            missing += sum(not _exists(answer) for answer in answers)
    return missing


def _one_by_one(hosts: str, members: Sequence[MappedMember]) -> int:
    with connected(hosts, _LIMIT_S, of_kafka=False) as client:
        return sum(not _exists(client.get_async(path)) for path in _paths(members))


def _exists(answer: Any) -> bool:
    try:
        answer.get(timeout=_LIMIT_S)
    except kazoo_exceptions().NoNodeError:
        return False
    return True
