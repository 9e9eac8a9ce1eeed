"""kelpie migrate-offsets: the offsets of a group in ZooKeeper become those of a group of Kafka's own."""

import argparse

from kelpie.api.repair_requests import migrate_offsets
from kelpie.cli.amounts import seconds
from kelpie.cli.command import describe, option
from kelpie.cli.repairing import add_repair_options, run_repair
from kelpie.repair.migrate_offsets import Migration
from kelpie.repair.zookeeper_group import LIMIT_S


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "migrate-offsets",
        description="Commits the offsets that a group of Kafka 0.8's kind keeps in ZooKeeper for a group of "
        "Kafka's own. Refuses while consumers are registered in either. ZooKeeper stays as it is. Prints the "
        "plan; --apply does it.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie migrate-offsets -b kafka-1:9092 --zookeeper zk-1:2181 --group billing
                the plan
            kelpie migrate-offsets -b kafka-1:9092 --zookeeper zk-1:2181 --group billing --as new --apply
                do it, for a group of another name
        """,
    )
    option(
        parser,
        "--zookeeper HOST:PORT[,…][/PATH]",
        "zookeeper.connect of the group's consumers",
        required=True,
    )
    option(parser, "--group GROUP", "the group in ZooKeeper", required=True)
    option(parser, "--as NAME", "the name of Kafka's group; the same if left out", dest="name")
    option(
        parser,
        "--topic T[:0,1]",
        "only this topic, or these partitions of it; all that the group has offsets of if left out",
        action="append",
        default=[],
    )
    option(parser, "--backwards", "offsets that Kafka's group has already may go back")
    option(parser, "--into-log", "an offset that the log does not have becomes the nearest that it has")
    option(
        parser,
        "--zookeeper-timeout S",
        "seconds that ZooKeeper may take; %(default)g if left out",
        type=seconds,
        default=LIMIT_S,
    )
    add_repair_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    migration = Migration(
        arguments.zookeeper,
        arguments.group,
        arguments.name or arguments.group,
        tuple(arguments.topic),
        backwards=arguments.backwards,
        into_log=arguments.into_log,
        limit_s=arguments.zookeeper_timeout,
    )
    return run_repair(arguments, migrate_offsets(migration))
