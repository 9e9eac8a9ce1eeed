"""Outputs of Kafka's own tools on a fleet, as they were at a time: kafka-topics and kafka-consumer-groups."""

from collections.abc import Iterable, Sequence

from bench.fleet_disks import BROKERS, OFFSETS_PARTITIONS, home, replicas
from bench.fleet_groups import Group


def outputs(groups: Sequence[Group], at: int, alive: Sequence[int]) -> dict[str, str]:
    """Text by name. Groups whose coordinator is dead are in none."""
    there = [it for it in groups if it.exists(at) and _living(replicas(home(it.name)), alive)]
    return {
        "topics": _topics(groups, alive),
        "groups-offsets": "".join(_offsets(group, at) for group in there),
        "groups-members": "".join(_members(group, at) for group in there),
        "groups-state": "".join(_state(group, at, alive) for group in there),
    }


def _living(mine: Iterable[int], alive: Sequence[int]) -> list[int]:
    return [broker for broker in mine if broker in alive]


def _topics(groups: Sequence[Group], alive: Sequence[int]) -> str:
    lines = []
    for group in groups:
        lines.append(
            f"Topic: {group.topic}\tTopicId: {'A' * 18}{group.number:04}\tPartitionCount: {group.partitions}"
            "\tReplicationFactor: 3\tConfigs: "
        )
        lines += [_partition(group.topic, it, BROKERS, alive) for it in range(group.partitions)]
    lines.append(
        f"Topic: __consumer_offsets\tTopicId: {'B' * 22}\tPartitionCount: {OFFSETS_PARTITIONS}"
        "\tReplicationFactor: 2\tConfigs: cleanup.policy=compact"
    )
    offsets = range(OFFSETS_PARTITIONS)
    lines += [_partition("__consumer_offsets", it, replicas(it), alive) for it in offsets]
    return "\n".join(lines) + "\n"


def _partition(topic: str, partition: int, mine: Sequence[int], alive: Sequence[int]) -> str:
    living = _living(mine, alive)
    leader = str(living[0]) if living else "none"
    return (
        f"\tTopic: {topic}\tPartition: {partition}\tLeader: {leader}\tReplicas: {_listed(mine)}"
        f"\tIsr: {_listed(living)}\tElr: \tLastKnownElr: "
    )


def _listed(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _offsets(group: Group, at: int) -> str:
    rows = []
    holder = {position: seat for seat in group.seats(at) for position in seat.held}
    committed = group.committed(at)
    end = group.end(at)
    for topic, partition in group.positions:
        offset = committed.get((topic, partition))
        seat = holder.get((topic, partition))
        if offset is None and seat is None:
            continue
        rows.append(
            [
                group.name,
                topic,
                str(partition),
                "-" if offset is None else str(offset),
                str(end),
                "-" if offset is None else str(max(0, end - offset)),
                *(("-", "-", "-") if seat is None else (seat.member_id, seat.host, seat.client_id)),
            ]
        )
    return _table("GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID", rows)


def _members(group: Group, at: int) -> str:
    rows = []
    for seat in group.seats(at):
        by_topic: dict[str, list[int]] = {}
        for topic, partition in seat.held:
            by_topic.setdefault(topic, []).append(partition)
        held = ";".join(f"{topic}:{_listed(mine)}" for topic, mine in by_topic.items()) or "-"
        who = [group.name, seat.member_id, seat.host, seat.client_id, str(len(seat.held))]
        rows.append([*who, "-", held, "-", "-"])
    return _table(
        "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH "
        "TARGET-ASSIGNMENT",
        rows,
    )


def _state(group: Group, at: int, alive: Sequence[int]) -> str:
    coordinator = _living(replicas(home(group.name)), alive)[0]
    seats = group.seats(at)
    state = ["range", "Stable"] if seats else ["-", "Empty"]
    row = [group.name, f"10.0.1.{coordinator}:9092  ({coordinator})", *state, str(len(seats))]
    return _table("GROUP COORDINATOR_(ID) ASSIGNMENT-STRATEGY STATE #MEMBERS", [row])


def _table(header: str, rows: Sequence[Sequence[str]]) -> str:
    """As Kafka's tools line up their columns."""
    if not rows:
        return ""
    heads = [it.replace("_", " ") for it in header.split()]
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    lines = [
        " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (heads, *rows)
    ]
    return "\n" + "\n".join(lines) + "\n"
