"""Round after round. A round begins at its time, and not before the round before has ended.

A round in which no broker answers is kept as well. The cluster must stay the same: if the same addresses
answer with another cluster id, nothing is written.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from kelpie.client.admin.asking import Clock
from kelpie.client.settings import Settings
from kelpie.client.survey import wall_clock
from kelpie.client.zookeeper import ZooKeeperError
from kelpie.collect.landing import (
    SURVEY,
    ZOOKEEPER,
    LandedFile,
    Landing,
    TooLarge,
    clusters_at,
)
from kelpie.collect.landing_folders import LandingRefused
from kelpie.collect.survey import Surveyor, SurveyRound
from kelpie.collect.zookeeper import dump
from kelpie.evidence import snapshot_files, zookeeper_dumps
from kelpie.model.time import Instant
from kelpie.observations import Observations, Setting
from kelpie.observations.encoding import gathered
from kelpie.places import Place

_CLOCK_IS_BACK_MS = 1000


@dataclass(frozen=True, slots=True)
class CollectPlan:
    """What is collected, how often, and where to."""

    folder: Place
    settings: Settings | None = None
    zookeeper: str | None = None
    every_s: float = 30.0
    for_s: float | None = None
    """None: until it is stopped."""
    most_bytes: int | None = None
    limit_s: float = 120.0
    """For one round."""


@dataclass(slots=True)
class Round:
    """The report of a round, for a person."""

    at: Instant
    cluster: str = ""
    groups: int = 0
    partitions: int = 0
    unasked: int = 0
    size: int = 0
    """Bytes written."""
    took_s: float = 0.0
    deleted: list[LandedFile] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """Remarks for a person."""


Tell = Callable[[Round], None]


class Collector:
    """Use it once: `await Collector(plan, tell).run(stop)`."""

    def __init__(self, plan: CollectPlan, tell: Tell = lambda _: None, clock: Clock = wall_clock) -> None:
        self._plan, self._tell, self._clock = plan, tell, clock
        self._surveyor = Surveyor(plan.settings, clock, plan.limit_s) if plan.settings else None
        self._landing: Landing | None = None
        self._settings: dict[tuple[str, str], Setting] = {}
        self._settings_in: Place | None = None
        """The file that has them."""
        self._written = 0

    async def run(self, stop: asyncio.Event) -> int:
        """How many files were written. Raises LandingRefused, BadSettings."""
        loop = asyncio.get_running_loop()
        end = None if self._plan.for_s is None else loop.time() + self._plan.for_s
        try:
            self._recall()
            while True:
                begun = loop.time()
                report = Round(self._clock())
                await self._survey(report)
                await self._zookeeper(report)
                report.took_s = loop.time() - begun
                self._tell(report)
                following = max(begun + self._plan.every_s, loop.time())
                if stop.is_set() or (end is not None and following > end):
                    return self._written
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(following):
                        await stop.wait()
                    return self._written
        finally:
            self._close()

    async def _survey(self, report: Round) -> None:
        if self._surveyor is None:
            return
        surveyed = await self._surveyor.survey()
        cluster = self._cluster_of(surveyed)
        self._open(cluster)
        rows = surveyed.rows
        report.cluster = cluster
        groups = {group for listing in rows.listings for group in listing.groups}
        groups |= {row.group for row in rows.states if not row.error} | rows.known_groups.keys()
        report.groups = len(groups)
        report.partitions = len({(row.topic, row.partition) for row in rows.partitions if row.partition >= 0})
        report.unasked = len(rows.unasked)
        has_settings = self._settle(rows) if surveyed.answered else False
        header = snapshot_files.Header(
            cluster,
            surveyed.begun,
            surveyed.ended,
            self._surveyor.bootstrap,
            answered=surveyed.answered,
            unasked=report.unasked,
            has_settings=has_settings,
        )
        path = self._publish(SURVEY, snapshot_files.pack(header, rows), surveyed.begun, report)
        if has_settings:
            self._settings_in = path

    async def _zookeeper(self, report: Round) -> None:
        hosts = self._plan.zookeeper
        if hosts is None:
            return
        begun = self._clock()
        try:
            zookeeper_dump = await asyncio.to_thread(dump, hosts, self._plan.limit_s)
        except ZooKeeperError as error:
            if self._landing is None and not self._written:
                raise LandingRefused(str(error)) from None
            report.words.append(str(error))
            return
        if self._landing is None:
            self._open(zookeeper_dump.cluster or hosts)
        assert self._landing is not None
        if self._surveyor is None:
            report.cluster = self._landing.cluster
            rows = zookeeper_dumps.observe(zookeeper_dump, "")
            report.groups, report.partitions = len(rows.zookeeper_groups), len(rows.partitions)
            if zookeeper_dump.cluster and zookeeper_dump.cluster != self._landing.cluster:
                raise LandingRefused(_other_cluster(hosts, zookeeper_dump.cluster, self._landing.cluster))
        packed = zookeeper_dumps.pack(zookeeper_dump, hosts=hosts, begun=begun, ended=self._clock())
        self._publish(ZOOKEEPER, packed, begun, report)

    def _publish(self, kind: str, data: bytes, at: Instant, report: Round) -> Place | None:
        assert self._landing is not None
        behind = self._landing.newest - at
        if behind > _CLOCK_IS_BACK_MS:
            report.words.append(
                f"The clock stands {behind / 1000:,.0f} s before the newest snapshot. Names go on in order; "
                "times inside are the clock's."
            )
        try:
            path, deleted = self._landing.publish(kind, data, at)
        except TooLarge:
            report.words.append(
                f"It has {len(data):,} bytes, and --most-disk allows {self._landing.most_bytes:,} in all: it "
                "was not written."
            )
        except OSError as error:
            report.words.append(f"It could not be written: {error.strerror or error}.")
        else:
            self._written += 1
            report.size += len(data)
            report.deleted += deleted
            return path
        if not self._written:
            raise LandingRefused(f"{self._landing.folder}: {report.words[-1]}")
        return None

    def _settle(self, rows: Observations) -> bool:
        """Leaves settings out if an existing file has them. Returns whether this round has them."""
        now = {(row.of, row.name): row for row in rows.settings}
        changed = any(
            key not in self._settings or self._settings[key].value != row.value for key, row in now.items()
        )
        if not any(row.kind == "settings" for row in rows.unasked) and now:
            changed = changed or self._settings.keys() != now.keys()
            self._settings = now
        else:
            self._settings |= now
        if not changed and not self._is_gone(self._settings_in):
            rows.settings = []
            return False
        rows.settings = list(self._settings.values())
        return bool(rows.settings)

    @staticmethod
    def _is_gone(file: Place | None) -> bool:
        """A person may have deleted it. Where a store does not answer, it is there."""
        with suppress(OSError):
            return file is not None and not file.exists()
        return False

    def _cluster_of(self, surveyed: SurveyRound) -> str:
        """Raises LandingRefused when it is another one than before."""
        assert self._surveyor is not None
        known = self._landing.cluster if self._landing is not None else None
        if not surveyed.answered and surveyed.cluster_id is None:
            return known or self._surveyor.bootstrap
        # An id has no colon. A name with a colon is addresses: no broker had answered, or the release has no
        # ids.
        name = surveyed.cluster_id or (known if known and ":" in known else self._surveyor.bootstrap)
        if known is not None and known != name and ":" not in known:
            raise LandingRefused(_other_cluster(self._surveyor.bootstrap, name, known))
        return name

    def _open(self, cluster: str) -> None:
        if self._landing is not None and self._landing.cluster == cluster:
            return
        landing = Landing(self._plan.folder, cluster, self._plan.most_bytes).__enter__()
        self._close()
        self._landing = landing

    def _close(self) -> None:
        if self._landing is not None:
            self._landing.__exit__()
            self._landing = None

    def _recall(self) -> None:
        """What the folder knows of these addresses: which cluster that was, and its groups."""
        if self._surveyor is None or self._plan.settings is None:
            return
        try:
            known = clusters_at(self._plan.folder, map(str, self._plan.settings.bootstrap))
        except OSError as error:
            raise LandingRefused(f"{self._plan.folder} cannot be used: {error.strerror or error}.") from None
        if not known:
            return
        self._open(known[0])
        assert self._landing is not None
        newest = self._landing.newest_survey()
        if newest is None:
            return
        try:
            rows = snapshot_files.read_snapshot(newest, lambda line: line.startswith(_TELL_GROUPS))
            self._surveyor.remember(gathered(rows), self._landing.newest)
        except (snapshot_files.Torn, OSError):
            return  # It is one of many; the cluster itself is asked now.


_TELL_GROUPS = ('["listing",', '["known",', '["committed",', '["state",')


def _other_cluster(where: str, now: str, before: str) -> str:
    return (
        f"At {where} there is now cluster {now}; the snapshots in this folder are of cluster {before}. They "
        "are not mixed: choose another folder, or move the old snapshots away."
    )
