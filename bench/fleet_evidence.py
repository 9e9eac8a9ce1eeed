"""A fleet's evidence with known truth: several clusters, each a folder as somebody gathers it in an incident.

    CLUSTER/disks/broker-1/…     the offsets topic, as it lies on the brokers' disks
    CLUSTER/logs/broker-1.log    what brokers wrote, and what clients did
    CLUSTER/tools/before-*.txt   outputs of Kafka's own tools, at two times
    CLUSTER/tools/now-*.txt
    CLUSTER/scrapes/*.prom       what kafka_exporter told of lag

`Fleet.write` says what is true of it: which findings there must be, and what each group had committed last.
In each cluster most groups are well, some of these restarted or transactional, and each kind of fault befalls
as many groups as told. In the last cluster two of three brokers die at the end.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.fleet_disks import BROKERS, OFFSETS_PARTITIONS, Disks, Position, home, replicas
from bench.fleet_faults import (
    DAY_MS,
    FAULTS,
    MINUTE_MS,
    OUTAGE,
    ROUND_MS,
    Group,
    earlier_look,
    healthy,
    restarted,
    stamp,
    transactional,
)

START_MS = 1_790_000_000_000
ALIVE = 1
"""The broker that is left in an outage."""


@dataclass(slots=True)
class Truth:
    findings: set[tuple[str, str | None]] = field(default_factory=set)
    """Code and group; None for what is told of a cluster."""
    committed: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """By group, topic and partition: the last offset that counts."""
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

    def __post_init__(self) -> None:
        if self.groups < len(FAULTS) * self.faults + 3:
            raise ValueError(f"{len(FAULTS) * self.faults} faults need more groups than {self.groups}")
        if self.days * DAY_MS < 25 * MINUTE_MS:
            raise ValueError("a fleet needs 0.018 days at least: faults happen in the last 20 minutes")

    def write(self, folder: Path) -> dict[str, Truth]:
        return {
            f"cluster-{number}": self._write_cluster(
                folder / f"cluster-{number}", is_hit=number == self.clusters
            )
            for number in range(1, self.clusters + 1)
        }

    def _write_cluster(self, folder: Path, *, is_hit: bool) -> Truth:
        now = START_MS + round(self.days * DAY_MS)
        disks = Disks()
        groups = [
            Group(f"team-{number % 7}.service-{number:04}", number, self.partitions, START_MS, now)
            for number in range(self.groups)
        ]
        kinds = [fault for fault in FAULTS.values() for _ in range(self.faults)]
        for number, group in enumerate(groups):
            if number < len(kinds):
                kinds[number](group, disks)
            else:
                (restarted if number % 9 == 1 else transactional if number % 9 == 4 else healthy)(
                    group, disks
                )
        truth = Truth()
        truth.records = disks.save(folder / "disks", folder.name)
        self._judge(groups, truth, is_hit=is_hit)
        _write_tools(folder / "tools", groups, truth, now, is_hit=is_hit)
        _write_logs(folder / "logs", groups, now, is_hit=is_hit)
        _write_scrapes(folder / "scrapes", groups, now)
        return truth

    @staticmethod
    def _judge(groups: Sequence[Group], truth: Truth, *, is_hit: bool) -> None:
        for group in groups:
            truth.findings |= {(code, group.name) for code in group.told}
            for (topic, partition), offset in group.committed.items():
                truth.committed[group.name, topic, partition] = offset
        if not is_hit:
            return
        for group in groups:
            if ALIVE not in replicas(home(group.name)):
                truth.outage.add(group.name)
                # Whether it would go on if it had a coordinator, nobody can say; what was before is told.
                truth.findings -= {(code, group.name) for code in ("KLP309", "KLP310")}
                truth.findings.add(("KLP101", group.name))
        # Every other partition of the offsets topic has one copy left in sync.
        truth.findings.add(("KLP106", None))


def _write_tools(folder: Path, groups: Sequence[Group], truth: Truth, now: int, *, is_hit: bool) -> None:
    folder.mkdir()
    looks = (("before", earlier_look(now), False), ("now", now, is_hit))
    for word, at, outage in looks:
        seen = [group for group in groups if not (outage and group.name in truth.outage)]
        texts = {
            "topics": _topics(groups, outage=outage),
            "groups-offsets": _offsets(seen, at, earlier=word == "before"),
            "groups-members": _members(seen),
            "groups-state": _states(seen),
        }
        for name, text in texts.items():
            _save(folder / f"{word}-{name}.txt", text, at)


def _topics(groups: Sequence[Group], *, outage: bool) -> str:
    lines = []
    for group in groups:
        lines.append(
            f"Topic: {group.topic}\tTopicId: {'A' * 18}{group.number:04}\tPartitionCount: {group.partitions}"
            "\tReplicationFactor: 3\tConfigs: "
        )
        lines += [
            _partition(group.topic, partition, BROKERS, outage=outage)
            for partition in range(group.partitions)
        ]
    lines.append(
        f"Topic: __consumer_offsets\tTopicId: {'B' * 22}\tPartitionCount: {OFFSETS_PARTITIONS}"
        "\tReplicationFactor: 2\tConfigs: cleanup.policy=compact"
    )
    lines += [
        _partition("__consumer_offsets", partition, replicas(partition), outage=outage)
        for partition in range(OFFSETS_PARTITIONS)
    ]
    return "\n".join(lines) + "\n"


def _partition(topic: str, partition: int, mine: Sequence[int], *, outage: bool) -> str:
    alive = [it for it in mine if not outage or it == ALIVE]
    leader = str(alive[0]) if alive else "none"
    return (
        f"\tTopic: {topic}\tPartition: {partition}\tLeader: {leader}\tReplicas: {_listed(mine)}"
        f"\tIsr: {_listed(alive)}\tElr: \tLastKnownElr: "
    )


def _listed(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _offsets(groups: Sequence[Group], at: int, *, earlier: bool) -> str:
    text = ""
    for group in groups:
        rows = []
        holder = {position: seat for seat in group.seats for position in seat.held}
        committed = group.earlier if earlier else group.committed
        for topic, partition in group.positions:
            offset = committed.get((topic, partition))
            seat = holder.get((topic, partition))
            if offset is None and seat is None:
                continue
            end = group.end(at)
            rows.append(
                [
                    group.name,
                    topic,
                    str(partition),
                    "-" if offset is None else str(offset),
                    str(end),
                    "-" if offset is None else str(max(0, end - offset)),
                    *(("-", "-", "-") if seat is None else (seat.member_id, seat.host, seat.member)),
                ]
            )
        if rows:
            text += _table(
                "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID", rows
            )
    return text


def _members(groups: Sequence[Group]) -> str:
    text = ""
    for group in groups:
        rows = []
        for seat in group.seats:
            by_topic: dict[str, list[int]] = {}
            for topic, partition in seat.held:
                by_topic.setdefault(topic, []).append(partition)
            held = ";".join(f"{topic}:{_listed(mine)}" for topic, mine in by_topic.items()) or "-"
            rows.append(
                [
                    group.name,
                    seat.member_id,
                    seat.host,
                    seat.member,
                    str(len(seat.held)),
                    "-",
                    held,
                    "-",
                    "-",
                ]
            )
        if rows:
            text += _table(
                "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH "
                "TARGET-ASSIGNMENT",
                rows,
            )
    return text


def _states(groups: Sequence[Group]) -> str:
    text = ""
    for group in groups:
        coordinator = min(set(replicas(home(group.name))))
        state = ["range", "Stable"] if group.seats else ["-", "Empty"]
        row = [group.name, f"10.0.1.{coordinator}:9092  ({coordinator})", *state, str(len(group.seats))]
        if group.committed or group.seats:
            text += _table("GROUP COORDINATOR_(ID) ASSIGNMENT-STRATEGY STATE #MEMBERS", [row])
    return text


def _table(header: str, rows: Sequence[Sequence[str]]) -> str:
    """As Kafka's tools line up their columns."""
    heads = [it.replace("_", " ") for it in header.split()]
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    lines = [
        " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (heads, *rows)
    ]
    return "\n" + "\n".join(lines) + "\n"


def _write_logs(folder: Path, groups: Sequence[Group], now: int, *, is_hit: bool) -> None:
    folder.mkdir()
    lines = [
        (
            START_MS - 30_000,
            "INFO",
            "[BrokerServer id=1] Transition from STARTING to STARTED",
            "kafka.server.X",
        )
    ]
    for group in groups:
        lines += [(at, "INFO", text, "org.apache.kafka.coordinator.group.G") for at, text in group.broker_log]
    if is_hit:
        for broker in BROKERS:
            if broker != ALIVE:
                lines.append(
                    (
                        now - 30_000,
                        "INFO",
                        f"[QuorumController id=100] Fencing broker {broker} because its session "
                        "has timed out.",
                        "org.apache.kafka.controller.ReplicationControlManager",
                    )
                )
    lines += [
        (at, "INFO", "[LocalLog partition=orders-0001-0, dir=/data] Rolled new log segment", "kafka.log.L")
        for at in range(START_MS, now, MINUTE_MS)
    ]
    lines.sort()
    text = "\n".join(f"[{stamp(at)}] {level} {text} ({logger})" for at, level, text, logger in lines)
    _save(folder / "broker-1.log", text + "\n", lines[-1][0])
    for group in groups:
        if group.client_log:
            _save(folder / f"client-{group.name}.log", "\n".join(group.client_log) + "\n", now)


def _write_scrapes(folder: Path, groups: Sequence[Group], now: int) -> None:
    folder.mkdir()
    lines = ["# HELP kafka_consumergroup_lag Lag", "# TYPE kafka_consumergroup_lag gauge"]
    for group in groups:
        lines += [
            f'kafka_consumergroup_lag{{consumergroup="{group.name}",topic="{topic}",'
            f'partition="{partition}"}} {group.end(now) - offset}'
            for (topic, partition), offset in group.committed.items()
        ]
    _save(folder / "exporter.prom", "\n".join(lines) + "\n", now)


def _save(path: Path, text: str, at: int) -> None:
    """With the time at which it was made: files keep that, unless somebody copies them without."""
    path.write_text(text)
    os.utime(path, (at / 1000, at / 1000))


__all__ = ["DAY_MS", "OUTAGE", "ROUND_MS", "Fleet", "Position", "Truth"]
