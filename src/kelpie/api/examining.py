"""Examining a cluster, files or tables: `kelpie doctor`, `kelpie groups`, `kelpie explain`."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from kelpie.api.places import FolderLike, PathLike, Place, paths, settings_at
from kelpie.api.tables import needs_pipeline
from kelpie.attribution.addresses import KOP_ROOT
from kelpie.client.history import BYTES_PER_PARTITION
from kelpie.client.zookeeper_survey import ZooKeeperPlace
from kelpie.doctor.broker_loss import BrokerLoss, needs_of
from kelpie.doctor.broker_loss import broker_losses as losses_of
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.group_history import GroupHistory
from kelpie.doctor.overview import ORDERS, GroupOverview, overview
from kelpie.doctor.rule import Rule
from kelpie.doctor.rule_names import rule_named
from kelpie.doctor.rules import rules as all_rules
from kelpie.evidence import read_evidence as read_files
from kelpie.evidence.logs.hints import NO_HINTS, Hints
from kelpie.examination import Changes, Examination, Examined, changes
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.selection import Selection
from kelpie.observations import Observations
from kelpie.places import place_of
from kelpie.store import Store


@dataclass(frozen=True, slots=True)
class GroupsSeen:
    """Groups at a glance, the worst first. `diagnosis.unasked` says what could not be asked."""

    rows: tuple[GroupOverview, ...]
    diagnosis: Diagnosis
    saw_anything: bool
    """False if nothing answered, and files say nothing."""

    def __iter__(self) -> Iterator[GroupOverview]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Look:
    """One of several examinations."""

    examined: Examined
    changes: Changes | None
    """What came and went since the look before. None: this is the first one."""


def examination_of(
    cluster: Place | None = None,
    *,
    groups: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    evidence: PathLike | Iterable[PathLike] = (),
    hints: Hints = NO_HINTS,
    zookeeper: str | ZooKeeperPlace | None = None,
    history_bytes: int | None = BYTES_PER_PARTITION,
    gentle: bool = False,
    store: Store | None = None,
) -> Examination:
    """What `examine` examines, to be examined several times. Reads the evidence. Raises KelpieError."""
    files = paths(evidence)
    if cluster is None and zookeeper is None and not files:
        raise KelpieError("There is nothing to examine: name a cluster, a ZooKeeper or files of evidence.")
    if isinstance(zookeeper, str):
        zookeeper = ZooKeeperPlace(zookeeper, KOP_ROOT)
    return Examination(
        settings_at(cluster) if cluster is not None else None,
        Selection(None if groups is None else list(groups), list(exclude)),
        read_files(files, hints=hints),
        history_bytes,
        store,
        gentle=gentle,
        zookeeper=zookeeper,
    )


async def examine(
    cluster: Place | None = None,
    *,
    groups: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    evidence: PathLike | Iterable[PathLike] = (),
    hints: Hints = NO_HINTS,
    zookeeper: str | ZooKeeperPlace | None = None,
    history_bytes: int | None = BYTES_PER_PARTITION,
    gentle: bool = False,
    store: Store | None = None,
) -> Examined:
    """Which groups do not consume, why, and what to do: of a cluster, files, or both. Changes nothing.

    A cluster that does not answer is a result, too. `groups`, `exclude`: names or patterns. `evidence`: files
    and folders. `zookeeper`: "zk-1:2181", to be asked as well, or alone. `history_bytes`: how much of the end
    of each partition of the offsets topic is read; None: nothing. `gentle`: ask a busy cluster for less.
    `store`: where earlier surveys are kept (`Store()` is that of the commands); None: nothing is remembered.

    Raises KelpieError if a file is missing, or an address is none.
    """
    made = await asyncio.to_thread(
        partial(
            examination_of,
            cluster,
            groups=groups,
            exclude=exclude,
            evidence=evidence,
            hints=hints,
            zookeeper=zookeeper,
            history_bytes=history_bytes,
            gentle=gentle,
            store=store,
        )
    )
    return await made.examine()


async def watch(examination: Examination, *, every_s: float = 10.0) -> AsyncIterator[Look]:
    """Examines again and again, and says what has changed. Ends when the caller stops asking."""
    before: Diagnosis | None = None
    examination = examination.repeated()
    while True:
        examined = await examination.examine()
        yield Look(examined, changes(before, examined.diagnosis) if before is not None else None)
        before = examined.diagnosis
        await asyncio.sleep(every_s)


async def groups(
    cluster: Place | None = None,
    *,
    groups: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    evidence: PathLike | Iterable[PathLike] = (),
    zookeeper: str | ZooKeeperPlace | None = None,
    sort: str = "worst",
) -> GroupsSeen:
    """All groups at a glance, healthy ones too. `sort`: worst, lag, age, name …, as --sort takes it."""
    if sort not in ORDERS:
        raise KelpieError(f"Groups cannot be sorted by {sort!r}; choose {', '.join(ORDERS)}.")
    examined = await examine(cluster, groups=groups, exclude=exclude, evidence=evidence, zookeeper=zookeeper)
    return groups_of(examined, sort)


def groups_of(examined: Examined, sort: str = "worst") -> GroupsSeen:
    """The groups of an examination at a glance."""
    diagnosis, saw_anything, cases = examined
    known = [case for case in cases if case.group not in diagnosis.unheard_of]
    rows = sorted(overview(known, diagnosis.findings), key=ORDERS[sort])
    return GroupsSeen(tuple(rows), diagnosis, saw_anything)


def broker_losses(examined: Examined) -> tuple[BrokerLoss, ...]:
    """For each living broker: which groups would stop if it died now, and which would only move."""
    return losses_of(examined.diagnosis.cluster, needs_of(examined.cases))


def read_tables(
    folder: FolderLike, *, cluster: str | None = None, groups: Sequence[str] | None = None
) -> Diagnosis:
    """What the pipeline found, from its tables: `kelpie doctor --tables`. Raises KelpieError."""
    with needs_pipeline():
        from kelpie.pipeline.results import read_diagnosis  # noqa: PLC0415 - an extra.
    return read_diagnosis(place_of(str(folder)), cluster, None if groups is None else Selection(list(groups)))


def read_evidence(evidence: PathLike | Iterable[PathLike], *, hints: Hints = NO_HINTS) -> Observations:
    """All rows of files: logs, outputs of Kafka's tools, disks, archives of these. Raises KelpieError."""
    return read_files(paths(evidence), hints=hints)


def explain(code: str) -> Rule:
    """What a finding means, by its code or name: its page is `.page`. Raises KelpieError."""
    return rule_named(code)


def rules() -> dict[str, Rule]:
    """All that the doctor can find, by code."""
    return dict(all_rules())


def group_history(folder: FolderLike, group: str, cluster: str | None = None) -> GroupHistory:
    """Lag, commits and rebalances of a group over all the time that tables know. Raises KelpieError."""
    with needs_pipeline():
        from kelpie.pipeline.histories import GroupTables  # noqa: PLC0415 - an extra.
        from kelpie.pipeline.results import chosen_cluster  # noqa: PLC0415
        from kelpie.pipeline.storage.lake import Lake  # noqa: PLC0415
    lake = Lake(place_of(str(folder)), read_only=True)
    tables = GroupTables(lake, chosen_cluster(lake, cluster))
    bounds = tables.bounds()
    return tables.history(group, bounds) if bounds is not None else GroupHistory()
