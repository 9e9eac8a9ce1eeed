"""Round after round. A round begins when the one before is over, and not before its time has come.

A round that finds nobody is kept as well: that nobody answered is what was seen. Which cluster it is must not
change: what answers at the same addresses under another id is another cluster, and nothing is written for it.
"""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from kelpie.client.admin.asking import Clock
from kelpie.client.settings import Settings
from kelpie.client.survey import wall_clock
from kelpie.client.zookeeper import ZooKeeperError
from kelpie.collect.landing import SURVEY, ZOOKEEPER, Landing, Own, Refused, TooLarge, clusters_at
from kelpie.collect.survey import Look, Surveyor
from kelpie.collect.zookeeper import dump
from kelpie.evidence import snapshot_files, zookeeper_dumps
from kelpie.model.time import Instant
from kelpie.observations import Observations, Setting
from kelpie.observations.encoding import gathered

_CLOCK_IS_BACK_MS = 1000


@dataclass(frozen=True, slots=True)
class Plan:
    """What is collected, how often, and where to."""

    folder: Path
    settings: Settings | None = None
    zookeeper: str | None = None
    every_s: float = 30.0
    for_s: float | None = None
    """None: until somebody says stop."""
    most_bytes: int | None = None
    limit_s: float = 120.0
    """For one round."""


@dataclass(slots=True)
class Round:
    """What a round did, for a person."""

    at: Instant
    cluster: str = ""
    groups: int = 0
    partitions: int = 0
    unasked: int = 0
    size: int = 0
    """Bytes written."""
    took_s: float = 0.0
    deleted: list[Own] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """What a person should know."""


Tell = Callable[[Round], None]


class Collector:
    """Use it once: `await Collector(plan, tell).run(stop)`."""

    def __init__(self, plan: Plan, tell: Tell = lambda _: None, clock: Clock = wall_clock) -> None:
        self._plan, self._tell, self._clock = plan, tell, clock
        self._surveyor = Surveyor(plan.settings, clock, plan.limit_s) if plan.settings else None
        self._landing: Landing | None = None
        self._settings: dict[tuple[str, str], Setting] = {}
        self._settings_in: Path | None = None
        """The file that has them."""
        self._written = 0

    async def run(self, stop: asyncio.Event) -> int:
        """How many files were written. Raises Refused, BadSettings."""
        loop = asyncio.get_running_loop()
        end = None if self._plan.for_s is None else loop.time() + self._plan.for_s
        with ExitStack() as open_until_the_end:
            open_until_the_end.callback(self._close)
            self._recall()
            while True:
                begun = loop.time()
                told = Round(self._clock())
                await self._survey(told)
                await self._zookeeper(told)
                told.took_s = loop.time() - begun
                self._tell(told)
                following = max(begun + self._plan.every_s, loop.time())
                if stop.is_set() or (end is not None and following > end):
                    return self._written
                try:
                    async with asyncio.timeout_at(following):
                        await stop.wait()
                    return self._written
                except TimeoutError:
                    continue

    async def _survey(self, told: Round) -> None:
        if self._surveyor is None:
            return
        look = await self._surveyor.look()
        cluster = self._cluster_of(look)
        self._open(cluster)
        found = look.found
        told.cluster = cluster
        told.groups = len(_groups(found))
        told.partitions = len({(row.topic, row.partition) for row in found.partitions if row.partition >= 0})
        told.unasked = len(found.unasked)
        has_settings = self._settle(found) if look.answered else False
        header = snapshot_files.Header(
            cluster,
            look.begun,
            look.ended,
            self._surveyor.bootstrap,
            answered=look.answered,
            unasked=told.unasked,
            has_settings=has_settings,
        )
        path = self._publish(SURVEY, snapshot_files.pack(header, found), look.begun, told)
        if has_settings:
            self._settings_in = path

    async def _zookeeper(self, told: Round) -> None:
        hosts = self._plan.zookeeper
        if hosts is None:
            return
        begun = self._clock()
        try:
            found = await asyncio.to_thread(dump, hosts, self._plan.limit_s)
        except ZooKeeperError as error:
            if self._landing is None and not self._written:
                raise Refused(str(error)) from None
            told.words.append(str(error))
            return
        if self._landing is None:
            self._open(found.cluster or hosts)
        assert self._landing is not None
        if self._surveyor is None:
            told.cluster = self._landing.cluster
            self._count(zookeeper_dumps.observe(found, ""), told)
            if found.cluster and found.cluster != self._landing.cluster:
                raise Refused(_other_cluster(hosts, found.cluster, self._landing.cluster))
        packed = zookeeper_dumps.pack(found, hosts=hosts, begun=begun, ended=self._clock())
        self._publish(ZOOKEEPER, packed, begun, told)

    def _count(self, found: Observations, told: Round) -> None:
        told.groups = len(found.known_groups)
        told.partitions = len(found.partitions)

    def _publish(self, kind: str, data: bytes, at: Instant, told: Round) -> Path | None:
        assert self._landing is not None
        behind = self._landing.newest - at
        if behind > _CLOCK_IS_BACK_MS:
            told.words.append(
                f"The clock stands {behind / 1000:,.0f} s before the newest snapshot. Names go on in order; "
                "times inside are the clock's."
            )
        try:
            published = self._landing.publish(kind, data, at)
        except TooLarge:
            told.words.append(
                f"It has {len(data):,} bytes, and --most-disk allows {self._landing.most_bytes:,} in all: it "
                "was not written."
            )
        except OSError as error:
            told.words.append(f"It could not be written: {error.strerror or error}.")
        else:
            self._written += 1
            told.size += published.size
            told.deleted += published.deleted
            return published.path
        if not self._written:
            raise Refused(f"{self._landing.folder}: {told.words[-1]}")
        return None

    def _settle(self, found: Observations) -> bool:
        """Leaves settings out if the files that are there have them. Whether they are told."""
        now = {(row.of, row.name): row for row in found.settings}
        changed = any(
            key not in self._settings or self._settings[key].value != row.value for key, row in now.items()
        )
        if not any(row.kind == "settings" for row in found.unasked) and now:
            changed = changed or self._settings.keys() != now.keys()
            self._settings = now
        else:
            self._settings |= now
        if not changed and (self._settings_in is None or self._settings_in.exists()):
            found.settings = []
            return False
        found.settings = list(self._settings.values())
        return bool(found.settings)

    def _cluster_of(self, look: Look) -> str:
        """Raises Refused when it is another one than before."""
        assert self._surveyor is not None
        known = self._landing.cluster if self._landing is not None else None
        if not look.answered and look.cluster_id is None:
            return known or self._surveyor.bootstrap
        # No id has a colon, so what has one is addresses: nobody had answered yet, or the release has no ids.
        name = look.cluster_id or (known if known and ":" in known else self._surveyor.bootstrap)
        if known is not None and known != name and ":" not in known:
            raise Refused(_other_cluster(self._surveyor.bootstrap, name, known))
        return name

    def _open(self, cluster: str) -> None:
        if self._landing is not None and self._landing.cluster == cluster:
            return
        landing = Landing(self._plan.folder, cluster, self._plan.most_bytes).__enter__()
        self._close()
        self._landing = landing

    def _close(self) -> None:
        if self._landing is not None:
            self._landing.__exit__(None, None, None)
            self._landing = None

    def _recall(self) -> None:
        """What the folder knows of these addresses: which cluster that was, and its groups."""
        if self._surveyor is None or self._plan.settings is None:
            return
        try:
            known = clusters_at(self._plan.folder, map(str, self._plan.settings.bootstrap))
        except OSError as error:
            raise Refused(f"{self._plan.folder} cannot be used: {error.strerror or error}.") from None
        if not known:
            return
        self._open(known[0])
        assert self._landing is not None
        newest = self._landing.newest_survey()
        if newest is None:
            return
        try:
            rows = snapshot_files.read_snapshot(newest, lambda line: line.startswith(_TELL_GROUPS))
            self._surveyor.recall(gathered(rows), self._landing.newest)
        except (snapshot_files.Torn, OSError):
            return  # It is one of many; the cluster itself is asked now.


_TELL_GROUPS = ('["listing",', '["known",', '["committed",', '["state",')


def _groups(found: Observations) -> set[str]:
    groups = {group for listing in found.listings for group in listing.groups}
    return groups | {row.group for row in found.states if not row.error} | found.known_groups.keys()


def _other_cluster(where: str, now: str, before: str) -> str:
    return (
        f"At {where} there is now cluster {now}; the snapshots in this folder are of cluster {before}. They "
        "are not mixed: choose another folder, or move the old snapshots away."
    )
