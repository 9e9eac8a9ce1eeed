"""What is kept from look to look, so that series neither vanish nor count anything twice.

Commits and generations are read from the end of the offsets topic, and the ends that two looks read overlap:
of each group, only what is newer than what was counted before counts. Where an end does not reach back to the
look before, some commits are not counted: totals are lower bounds, and never go back.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from kelpie.client.admin.asking import Asking
from kelpie.client.admin.log_dirs import LogDirSizes, ask_log_dirs
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.doctor.case import Case
from kelpie.doctor.generation_changes import generation_changes
from kelpie.doctor.group_positions import commits_since, stands_still
from kelpie.doctor.overview import IN_ZOOKEEPER
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Committed
from kelpie.web.numbers import (
    ClusterNumbers,
    GroupNumbers,
    Totals,
    log_ends,
    unseen,
    with_last_known,
)
from kelpie.web.snapshot import Snapshot


class _Counted(NamedTuple):
    """Up to where a group's commits and generations are counted."""

    commit: Instant
    generation: Instant


_NOTHING = _Counted(-1, -1)


class Meter:
    """Of one cluster. `latest` has the numbers of the last look; None before the first."""

    def __init__(self, log_dirs_every_s: float | None = None) -> None:
        """`log_dirs_every_s`: how often brokers are asked for the sizes of their log directories, at most."""
        self.latest: ClusterNumbers | None = None
        self.log_dirs: LogDirSizes | None = None
        self._log_dirs_every_s = log_dirs_every_s
        self._asked_at = -math.inf
        self._counted: dict[str, _Counted] = {}
        self._committed: dict[str, Mapping[TopicPartition, Committed]] = {}
        self.at_rest: dict[str, int] = {}
        """How many new commits a group made. Only groups that commit the same offsets as before are here."""
        self._commits: dict[str, int] = {}
        self._rebalances: dict[str, Counter[str]] = {}
        self._records = 0

    async def ask(self, settings: Settings) -> None:
        """What looks do not ask; the thread that looks calls it after each look. What cannot be asked keeps
        its last known value.
        """
        now = asyncio.get_running_loop().time()
        if self._log_dirs_every_s is None or now - self._asked_at < self._log_dirs_every_s:
            return
        self._asked_at = now
        with suppress(ClientError):
            async with await Nodes.open(settings) as nodes:
                self.log_dirs = await ask_log_dirs(Asking(nodes))
        if self.latest is not None:
            self.latest = replace(self.latest, log_dirs=self.log_dirs)

    def take(self, look: Snapshot) -> ClusterNumbers:
        """The thread that looks calls it, once for each look."""
        before, diagnosis = self.latest, look.diagnosis
        cluster, losses = diagnosis.cluster, look.losses
        if before is not None and not look.saw_anything:
            cluster, losses = before.cluster, tuple(before.losses)
        self.at_rest = {}
        for case in look.observed().values():
            self._count(case)
        last_known = before.groups if before is not None else {}
        groups = {group.row.group: group for group in self._groups(look, dict(last_known))}
        cost = diagnosis.cost
        self.latest = ClusterNumbers(
            look.at,
            look.took_ms,
            look.saw_anything,
            cost.requests if cost is not None else None,
            cluster,
            losses,
            log_ends(cluster, before.ends if before is not None else {}),
            groups,
            tuple(finding for finding in diagnosis.unacknowledged if finding.until is None),
            look.findings_by_group,
            Totals(dict(self._commits), dict(self._rebalances), self._records),
            self.log_dirs,
        )
        return self.latest

    def _groups(self, look: Snapshot, last_known: dict[str, GroupNumbers]) -> Iterable[GroupNumbers]:
        for now in look.numbers:
            known = last_known.pop(now.row.group, None)
            if known is None or now.is_whole or _is_gone(look, now):
                yield now
            else:
                yield with_last_known(now, known)
        for group, known in last_known.items():
            if _is_gone(look, known):
                self._forget(group)
            else:
                yield unseen(known)

    def _forget(self, group: str) -> None:
        self._counted.pop(group, None)
        self._committed.pop(group, None)
        self._commits.pop(group, None)
        self._rebalances.pop(group, None)

    def _count(self, case: Case) -> None:
        group = case.group
        counted = self._counted.get(group, _NOTHING)
        newest, commits = self._new_commits(case, counted.commit)
        generation = counted.generation
        if case.generations or case.events:
            changes = generation_changes(case)
            # What was before the first generation that is known is not, so neither is its cause.
            is_cut = counted is _NOTHING and bool(changes) and changes[0].generation > 1
            causes = Counter(change.cause for change in changes[is_cut:] if change.at > generation)
            self._rebalances.setdefault(group, Counter()).update(causes)
            self._records += causes.total()
            generation = max((change.at for change in changes), default=generation)
        if commits or counted is _NOTHING:
            self._commits[group] = self._commits.get(group, 0) + commits
            self._records += commits
        if (newest, generation) != counted or counted is _NOTHING:
            self._counted[group] = _Counted(newest, generation)

    def _new_commits(self, case: Case, since: Instant) -> tuple[Instant, int]:
        """The time of the newest, and how many are new: by the history, or by offsets that have changed."""
        newest, by_history = since, 0
        for at, offsets in commits_since(case.commits, since):
            newest = max(newest, at)
            by_history += offsets
        known, now = self._committed.get(case.group), case.committed
        self._committed[case.group] = now
        if known is None:
            return newest, by_history
        if stands_still(known, now):
            self.at_rest[case.group] = by_history
            return newest, by_history
        return newest, max(by_history, _changed(known, now))


def _changed(before: Mapping[TopicPartition, Committed], now: Mapping[TopicPartition, Committed]) -> int:
    """How many offsets are not what they were."""
    old = {name: row.offset for name, row in before.items() if row.offset >= 0}
    return sum(row.offset >= 0 and old.get(name) != row.offset for name, row in now.items())


def _is_gone(look: Snapshot, group: GroupNumbers) -> bool:
    return look.shows_no(group.row.group, in_zookeeper=group.row.kind == IN_ZOOKEEPER)
