"""kelpie where: from a group's name to its partition of the offsets topic, to the broker that leads it."""

import argparse
from collections.abc import Sequence

from kelpie.cli.command import CommandError, describe
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.offsets_topic import add_topic_options, topic_of
from kelpie.cli.terminal import terminal_width
from kelpie.cli.text_table import text_table
from kelpie.cluster import ClusterView
from kelpie.cluster.health import Health, health_of
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import java_hash
from kelpie.model.quoting import harmless

_HEAD = ("GROUP", "HASH", "PARTITION", "LEADER", "REPLICAS", "ISR", "HEALTHY")


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "where",
        description="Shows hash, partition of __consumer_offsets, leader and ISR of groups. The partition is "
        "computed, so that nobody need be asked who may be down.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie where billing orders -b kafka-1:9092
                where two groups live, and whether that is healthy
            kelpie where billing --partitions 50
                the partition alone, without asking anybody
            kelpie where billing --describe topics.txt
                from what kafka-topics --describe has printed
        """,
        statuses={
            ExitStatus.OK: "all have a healthy coordinator, as far as was asked",
            ExitStatus.NO: "one has not",
            ExitStatus.NOT_KNOWN: "no broker answered",
        },
    )
    parser.add_argument(
        "groups", nargs="+", metavar="GROUP", help="names of groups, whether they exist or not"
    )
    add_topic_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    cluster = topic_of(arguments)
    if cluster is None:
        raise CommandError("Where should it look? Give -b HOST:PORT, --describe FILE, or --partitions N.")
    rows, healthy = [], True
    for group in dict.fromkeys(arguments.groups):
        home = cluster.home_of(group)
        assert home is not None
        row, is_healthy = _row(cluster, home)
        rows.append((harmless(group), str(java_hash(group)), str(home.partition), *row))
        healthy &= is_healthy
    if cluster.views:
        print(text_table([_HEAD, *rows], terminal_width()))
    else:
        print(text_table([_HEAD[:3], *(row[:3] for row in rows)]))
    return ExitStatus.OK if healthy else ExitStatus.NO


def _row(cluster: ClusterView, name: TopicPartition) -> tuple[tuple[str, ...], bool]:
    view = cluster.view(name)
    if view is None:
        return ("?", "?", "?", "nobody could say"), not cluster.views
    health = health_of(cluster, name)
    broker = cluster.brokers.get(view.leader)
    reason = broker.reason if broker else "nothing tells of its leader"
    verdicts = {
        Health.NO_LEADER: "no: it has no leader (KLP101)",
        Health.LEADER_DEAD: f"no: broker {view.leader} is dead (KLP101)",
        Health.UNKNOWN: f"not known: {reason}",
        Health.AT_RISK: f"yes, but broker {view.leader} alone is in sync (KLP106)",
    }
    leader = "none" if view.leader < 0 else str(broker or view.leader).removeprefix("broker ")
    cells = (leader, _nodes(view.replicas), _nodes(view.in_sync) or "none", verdicts.get(health, "yes"))
    return cells, health.is_led


def _nodes(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes))
