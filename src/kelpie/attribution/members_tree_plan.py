"""How the plan `incarnation` finds the group of a fetch.

A connection belongs to one client, and a client to one group, for as long as it lives. So the label of a
connection, once it is certain, is right until the connection closes: also while the group rebalances, while
its coordinator is dead, and when the store cannot be reached. Only new connections must be decided:

1. Their counts wait. Each fetch is evidence: a partition, and a time.
2. The claims of the address are read (`members_tree`), always after the fetch that they shall explain.
3. Each fetch leaves the groups that may have made it, and the connection belongs to a group that is left by
   all its fetches. One group: that is the label. More or none: the next fetches, or claims that come late,
   may tell.
4. When `hold_ms` have passed without a decision, the counts go to `ambiguous`, or to "" if no group was left.
   The connection stays open to a decision.
"""

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from kelpie.attribution.addresses import ClientAddress, address_node
from kelpie.attribution.counters import AMBIGUOUS, UNKNOWN, Amount, Counters
from kelpie.attribution.members_tree import Claims, groups_of, read_claims
from kelpie.attribution.plan import Connection, Plan
from kelpie.attribution.requests import ReadChildren, Request
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

_MOST_EVIDENCE = 32
"""Fetches that are kept to decide a connection. The newest tell as much as all."""


class _Evidence(NamedTuple):
    partition: TopicPartition
    at: Instant
    read: int
    """The first read of the tree that was sent after this fetch. Earlier ones tell nothing about it."""


@dataclass(slots=True)
class _Undecided:
    """A connection that has no label yet."""

    path: str
    since: Instant
    next_read: Instant
    uncounted: list[tuple[TopicPartition, Amount]] = field(default_factory=list)
    evidence: list[_Evidence] = field(default_factory=list)
    groups: frozenset[str] = frozenset()
    """What the fetches so far leave."""
    is_overdue: bool = False
    """Its counts wait no longer."""
    is_closed: bool = False

    @property
    def label(self) -> str:
        return AMBIGUOUS if self.groups else UNKNOWN


@dataclass(slots=True)
class Label:
    group: str
    is_hint: bool
    """Only a hint names the group: the consumer assigns itself partitions, and no coordinator knows it."""
    hinted: Instant
    """When this broker last renewed the hint."""


_Client = tuple[Connection, ClientAddress]


class MembersTreePlan(Plan, ABC):
    hold_ms = 30_000
    read_again_ms = 1_000
    read_again_overdue_ms = 10_000

    def __init__(self, broker: int, life: int, counters: Counters) -> None:
        super().__init__(broker, life, counters)
        self._labels: dict[_Client, Label] = {}
        self._undecided: dict[_Client, _Undecided] = {}
        self._by_path: defaultdict[str, dict[_Client, None]] = defaultdict(dict)
        self._of_connection: defaultdict[Connection, list[_Client]] = defaultdict(list)
        self._reads: defaultdict[str, deque[int]] = defaultdict(deque)
        """Numbers of the reads that are under way, by path."""
        self._next_number = 0

    def fetched(
        self,
        connection: Connection,
        client: ClientAddress,
        partition: TopicPartition,
        amount: Amount,
        now: Instant,
    ) -> list[Request]:
        key = (connection, client)
        label = self._labels.get(key)
        if label is not None:
            self.counters.count(partition, label.group, amount)
            return self._renew_hint(client, label, now) if label.is_hint else []
        undecided = self._undecided.get(key)
        if undecided is None:
            undecided = self._undecided[key] = _Undecided(address_node(client), now, now)
            self._by_path[undecided.path][key] = None
            self._of_connection[connection].append(key)
        undecided.evidence.append(_Evidence(partition, now, self._next_number))
        del undecided.evidence[:-_MOST_EVIDENCE]
        if undecided.is_overdue:
            self.counters.count(partition, undecided.label, amount)
        else:
            undecided.uncounted.append((partition, amount))
        return self._read_if_due(undecided, now)

    def connection_closed(self, connection: Connection, now: Instant) -> list[Request]:
        for key in self._of_connection.pop(connection, ()):
            self._labels.pop(key, None)
            undecided = self._undecided.get(key)
            if undecided is not None:
                undecided.is_closed = True
                if undecided.is_overdue:
                    self._forget(key, undecided)
        return []

    def tick(self, now: Instant) -> list[Request]:
        requests: list[Request] = []
        for key, undecided in list(self._undecided.items()) if self._undecided else ():
            if not undecided.is_overdue and now - undecided.since >= self.hold_ms:
                self._count(undecided, undecided.label)
                undecided.is_overdue = True
                if undecided.is_closed:
                    self._forget(key, undecided)
            elif undecided.evidence and not undecided.is_overdue:
                requests += self._read_if_due(undecided, now)
        return requests

    def failed(self, request: Request, now: Instant) -> list[Request]:
        if isinstance(request, ReadChildren) and self._reads.get(request.path):
            self._read_ended(request.path)
        return []

    @abstractmethod
    def _renew_hint(self, client: ClientAddress, label: Label, now: Instant) -> list[Request]:
        """A client that only a hint names has fetched: keep the hint from ageing."""

    def _read(self, path: str) -> list[Request]:
        self._reads[path].append(self._next_number)
        self._next_number += 1
        return [ReadChildren(self.broker, path)]

    def _read_if_due(self, undecided: _Undecided, now: Instant) -> list[Request]:
        if now < undecided.next_read:
            return []
        wait = self.read_again_overdue_ms if undecided.is_overdue else self.read_again_ms
        undecided.next_read = now + wait
        return self._read(undecided.path)

    def _read_ended(self, path: str) -> int:
        under_way = self._reads[path]
        number = under_way.popleft()
        if not under_way:
            del self._reads[path]
        return number

    def _claims_read(
        self, path: str, children: dict[str, bytes], hints_from: Instant, now: Instant
    ) -> Claims:
        """Decide the connections of an address. Hints from before `hints_from` are too old to count."""
        number = self._read_ended(path) if self._reads.get(path) else -1
        claims = read_claims(children)
        fresh = {name: hint for name, hint in claims.hints.items() if hint.at >= hints_from}
        for key in list(self._by_path.get(path, ())):
            self._decide(key, self._undecided[key], Claims(claims.members, fresh), number, now)
        return claims

    def _decide(self, key: _Client, undecided: _Undecided, claims: Claims, number: int, now: Instant) -> None:
        unexplained: list[_Evidence] = []
        for evidence in undecided.evidence:
            groups = groups_of(claims, evidence.partition, evidence.at) if evidence.read <= number else None
            if groups:
                undecided.groups = undecided.groups & groups or groups
            else:
                unexplained.append(evidence)
        undecided.evidence = unexplained
        if len(undecided.groups) == 1:
            (group,) = undecided.groups
            self._count(undecided, group)
            self._forget(key, undecided)
            if not undecided.is_closed:
                is_hint = all(claim.group != group for claim in claims.members.values())
                self._labels[key] = Label(group, is_hint, now)

    def _count(self, undecided: _Undecided, label: str) -> None:
        for partition, amount in undecided.uncounted:
            self.counters.count(partition, label, amount)
        undecided.uncounted.clear()

    def _forget(self, key: _Client, undecided: _Undecided) -> None:
        del self._undecided[key]
        at_path = self._by_path[undecided.path]
        del at_path[key]
        if not at_path:
            del self._by_path[undecided.path]
