"""A fleet's evidence with known truth: several clusters, each a folder as somebody gathers it in an incident.

    CLUSTER/disks/broker-1/…         the offsets topic, as it lies on the brokers' disks
    CLUSTER/logs/broker-1.log        what brokers wrote, and what clients did
    CLUSTER/tools/before-*.txt       outputs of Kafka's own tools, at two times
    CLUSTER/tools/now-*.txt
    CLUSTER/collected/*.jsonl.gz     snapshots of `kelpie collect`
    CLUSTER/scrapes/*.prom           what kafka_exporter told of lag
    CLUSTER/notes.txt                what somebody wrote the day after

`Fleet.write` says what is true of it: which findings there must be, why groups rebalanced, and what each had
committed last. In each cluster most groups are well, some of these restarted, transactional, idle or a bit
behind, and each kind of fault befalls as many groups as told. Groups have the same names in all clusters,
and other fates: by the seed. In the last cluster two of three brokers die at the end, and with one of them
whoever took the snapshots. Files of every second cluster have lost their times.
"""

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.fleet_disks import BROKERS, Disks, home, replicas
from bench.fleet_faults import FAULTS
from bench.fleet_groups import DAY_MS, MINUTE_MS, Group
from bench.fleet_healthy import KINDS
from bench.fleet_lines import line_of, stamp
from bench.fleet_surveys import snapshot
from bench.fleet_tools import outputs

START_MS = 1_790_000_000_000
ALIVE = 1
"""The broker that is left in an outage."""
_DIED_MS = 30_000
"""Before the end."""
_LATEST_MS = MINUTE_MS
"""By so much do fates of the same kind differ in time."""
_BEFORE_MS = 4 * MINUTE_MS
"""When the tools were run the first time, before the end."""
_SNAPSHOT_EVERY_MS, _SNAPSHOTS_FROM_MS = 2 * MINUTE_MS, 20 * MINUTE_MS
_COORDINATOR, _CONTROLLER = (
    "org.apache.kafka.coordinator.group.GroupMetadataManager",
    "org.apache.kafka.controller.ReplicationControlManager",
)


@dataclass(slots=True)
class Truth:
    findings: set[tuple[str, str | None]] = field(default_factory=set)
    """Code and group; None for what is told of a cluster."""
    fates: dict[str, str] = field(default_factory=dict)
    """By group: its fault, or in which way it is well."""
    committed: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """By group, topic and partition: the last offset that counts."""
    causes: dict[str, dict[str, int]] = field(default_factory=dict)
    """By group: how many rebalances it had, by cause."""
    records: int = 0
    """On the disks, copies aside."""
    outage: set[str] = field(default_factory=set)
    """Groups without a coordinator."""


@dataclass(frozen=True, slots=True)
class Fleet:
    clusters: int
    groups: int
    """In each cluster."""
    partitions: int
    """That each group reads."""
    days: float
    faults: int
    """How many groups each kind of fault befalls, in each cluster."""
    seed: int = 0

    def __post_init__(self) -> None:
        least = len(FAULTS) * self.faults + len(KINDS)
        if self.groups < least:
            raise ValueError(f"{len(FAULTS)} kinds of faults, {self.faults} of each, need {least} groups")
        if self.days * DAY_MS < 25 * MINUTE_MS:
            raise ValueError("a fleet needs 0.018 days at least: faults happen in the last 20 minutes")

    def write(self, folder: Path) -> dict[str, Truth]:
        """What is true, by cluster."""
        return {f"cluster-{it}": self._write_cluster(folder, it) for it in range(1, self.clusters + 1)}

    def _write_cluster(self, folder: Path, number: int) -> Truth:
        own = folder / f"cluster-{number}"
        now = START_MS + round(self.days * DAY_MS)
        disks = Disks()
        truth = Truth()
        groups = self._groups(number, now, disks, truth)
        truth.records = disks.save(own / "disks", own.name)
        is_hit = number == self.clusters
        if is_hit:
            _judge_outage(groups, truth)
        else:
            # Of a group whose offset no snapshot could be told, nobody says that it stands still.
            unstable = {("KLP310", it.name) for it in groups if it.pending_since is not None}
            truth.findings -= unstable
        alive = [ALIVE] if is_hit else BROKERS
        _write_logs(own / "logs", groups, now, is_hit=is_hit)
        _write_tools(own / "tools", groups, [("before", now - _BEFORE_MS, BROKERS), ("now", now, alive)])
        last = now - _DIED_MS - MINUTE_MS if is_hit else now
        _write_snapshots(own / "collected", groups, disks, own.name, last)
        _write_scrapes(own / "scrapes", groups, now)
        _save(own / "notes.txt", "What we saw that day, for the meeting.\n", now + DAY_MS)
        if number % 2 == 0:
            _copy(own, now + DAY_MS)
        return truth

    def _groups(self, cluster: int, now: int, disks: Disks, truth: Truth) -> list[Group]:
        draw = random.Random(f"{self.seed} {cluster}")
        faults = [(name, it) for name in FAULTS for it in range(self.faults)]
        fates = [*faults, *(("", it) for it in range(self.groups - len(faults)))]
        draw.shuffle(fates)
        groups = []
        for number, (fault, variant) in enumerate(fates):
            group = Group(
                f"team-{number % 7}.service-{number:04}",
                number,
                self.partitions,
                START_MS,
                now,
                disks,
                cluster,
                draw.randrange(_LATEST_MS),
                variant + cluster,
            )
            happens = FAULTS[fault] if fault else KINDS[variant % len(KINDS)]
            happens(group)
            groups.append(group)
            truth.fates[group.name] = fault or happens.__name__
            truth.findings |= {(code, group.name) for code in group.told}
            truth.causes[group.name] = dict(group.causes)
            for (topic, partition), offset in group.committed(now).items():
                truth.committed[group.name, topic, partition] = offset
        return groups


def _judge_outage(groups: Sequence[Group], truth: Truth) -> None:
    for group in groups:
        if ALIVE not in replicas(home(group.name)):
            truth.outage.add(group.name)
            # Whether it would go on if it had a coordinator, nobody can say; what was before is told.
            truth.findings -= {(code, group.name) for code in ("KLP309", "KLP310")}
            truth.findings.add(("KLP101", group.name))
    # Every other partition of the offsets topic has one copy left in sync.
    truth.findings.add(("KLP106", None))


def _write_tools(
    folder: Path, groups: Sequence[Group], looks: Sequence[tuple[str, int, Sequence[int]]]
) -> None:
    folder.mkdir()
    for word, at, alive in looks:
        for name, text in outputs(groups, at, alive).items():
            _save(folder / f"{word}-{name}.txt", text, at)


def _write_logs(folder: Path, groups: Sequence[Group], now: int, *, is_hit: bool) -> None:
    folder.mkdir()
    died = now - _DIED_MS
    for broker in BROKERS:
        began = "[BrokerServer id={}] Transition from STARTING to STARTED"
        lines = [(START_MS - 30_000, began.format(broker), "kafka.server.BrokerServer")]
        own = (group for group in groups if replicas(home(group.name))[0] == broker)
        lines += [(at, text, _COORDINATOR) for group in own for at, text in group.broker_log]
        rolled = "[LocalLog partition=orders-0001-0, dir=/data] Rolled new log segment"
        lines += [(at, rolled, "kafka.log.LocalLog") for at in range(START_MS, now, MINUTE_MS)]
        if is_hit and broker != ALIVE:
            lines = [line for line in lines if line[0] < died]
        lines.sort()
        text = "".join(f"[{stamp(at)}] INFO {text} ({logger})\n" for at, text, logger in lines)
        _save(folder / f"broker-{broker}.log", text, lines[-1][0])
    if is_hit:
        text = "".join(
            f"[{stamp(died)}] INFO [QuorumController id=100] Fencing broker {broker} because its session has "
            f"timed out. ({_CONTROLLER})\n"
            for broker in BROKERS
            if broker != ALIVE
        )
        _save(folder / "controller-100.log", text, died)
    for group in groups:
        if group.client_log:
            lines_of = "".join(f"{line_of(line, group.name)}\n" for line in group.client_log)
            _save(folder / f"client-{group.name}.log", lines_of, now)


def _write_snapshots(folder: Path, groups: Sequence[Group], disks: Disks, cluster: str, last: int) -> None:
    folder.mkdir()
    before = None
    for at in range(last - _SNAPSHOTS_FROM_MS, last + 1, _SNAPSHOT_EVERY_MS):
        packed = snapshot(cluster, groups, disks, at, before)
        before = at
        (folder / f"survey-{cluster}-{stamp(at, '%Y%m%dT%H%M%S.')}Z.jsonl.gz").write_bytes(packed)


def _write_scrapes(folder: Path, groups: Sequence[Group], now: int) -> None:
    folder.mkdir()
    lines = ["# HELP kafka_consumergroup_lag Lag", "# TYPE kafka_consumergroup_lag gauge"]
    for group in groups:
        lines += [
            f'kafka_consumergroup_lag{{consumergroup="{group.name}",topic="{topic}",'
            f'partition="{partition}"}} {group.end(now) - offset}'
            for (topic, partition), offset in group.committed(now).items()
        ]
    _save(folder / "exporter.prom", "\n".join(lines) + "\n", now)


def _save(path: Path, text: str, at: int) -> None:
    """With the time at which it was made."""
    path.write_text(text)
    os.utime(path, (at / 1000, at / 1000))


def _copy(folder: Path, at: int) -> None:
    """Somebody copied all of it, and times of files were lost: now only what they show tells their time."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (at / 1000, at / 1000))


__all__ = ["Fleet", "Truth"]
