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
from kelpie.doctor.overview import IN_ZOOKEEPER
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.web.measures import later
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


class Meter:
    """Of one cluster. `latest` has the numbers of the last look; None before the first."""

    def __init__(self, log_dirs_every_s: float | None = None) -> None:
        """`log_dirs_every_s`: how often brokers are asked for the sizes of their log directories, at most."""
        self.latest: ClusterNumbers | None = None
        self.log_dirs: LogDirSizes | None = None
        self._log_dirs_every_s = log_dirs_every_s
        self._asked_at = -math.inf
        self._counted: dict[str, _Counted] = {}
        self._offsets: dict[str, Mapping[TopicPartition, int]] = {}
        self._commits: Counter[str] = Counter()
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
            {group: look.findings_of(group) for group in groups},
            Totals(dict(self._commits), dict(self._rebalances), self._records),
            self.log_dirs,
        )
        return self.latest

    def _groups(self, look: Snapshot, last_known: dict[str, GroupNumbers]) -> Iterable[GroupNumbers]:
        for now in look.numbers:
            known = last_known.pop(now.row.group, None)
            yield now if known is None or _is_gone(look, now) else with_last_known(now, known)
        for group, known in last_known.items():
            if _is_gone(look, known):
                self._forget(group)
            else:
                yield unseen(known)

    def _forget(self, group: str) -> None:
        self._counted.pop(group, None)
        self._offsets.pop(group, None)
        self._commits.pop(group, None)
        self._rebalances.pop(group, None)

    def _count(self, case: Case) -> None:
        counted = self._counted.get(case.group)
        commit, commits = self._new_commits(case, counted)
        self._commits[case.group] += commits
        self._records += commits
        generation = counted.generation if counted is not None else -1
        if case.generations or case.events:
            changes = generation_changes(case)
            # What was before the first generation that is known is not, so neither is its cause.
            is_cut = counted is None and bool(changes) and changes[0].generation > 1
            causes = Counter(change.cause for change in changes[is_cut:] if change.at > generation)
            self._rebalances.setdefault(case.group, Counter()).update(causes)
            self._records += causes.total()
            generation = max((change.at for change in changes), default=generation)
        self._counted[case.group] = _Counted(commit, generation)

    def _new_commits(self, case: Case, counted: _Counted | None) -> tuple[Instant, int]:
        """The time of the newest, and how many are new: by the history, or by offsets that have changed."""
        since = counted.commit if counted is not None else -1
        newest, by_history = since, 0
        for rows in case.commits.values():
            for at in later(rows, since):
                newest = max(newest, at)
                by_history += 1
        offsets = {name: row.offset for name, row in case.committed.items() if row.offset >= 0}
        known = self._offsets.get(case.group, offsets)
        self._offsets[case.group] = offsets
        return newest, max(by_history, sum(known.get(name) != offset for name, offset in offsets.items()))


def _is_gone(look: Snapshot, group: GroupNumbers) -> bool:
    return look.shows_no(group.row.group, in_zookeeper=group.row.kind == IN_ZOOKEEPER)
