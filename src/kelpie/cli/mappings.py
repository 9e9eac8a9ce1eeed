"""kelpie mappings: which client belongs to which group, as KoP keeps it in ZooKeeper; check and repair."""

import argparse
import asyncio

from kelpie.api.repair_requests import repair_mappings
from kelpie.attribution.addresses import KOP_ROOT
from kelpie.cli.amounts import duration, seconds
from kelpie.cli.command import CommandError, describe
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.node_path import node_path
from kelpie.cli.progress import progress
from kelpie.cli.repairing import add_repair_options, export, run_repair
from kelpie.cli.terminal import text_width
from kelpie.client.client_errors import ClientError
from kelpie.client.mapping_store import LIMIT_S
from kelpie.client.nodes import Nodes
from kelpie.documents.mappings import mappings_document
from kelpie.repair.mapping_survey import MappingTree, survey_mappings
from kelpie.repair.mappings import GRACE_S, MappingOptions, check
from kelpie.repair.plan import CannotRepair, Plan
from kelpie.repair.rendering import render


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "mappings",
        description="KoP (Kafka on Pulsar) keeps in ZooKeeper which client belongs to which group, to count "
        "what each group reads. Compares that tree with the members of all groups.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_check(actions)
    _add_repair(actions)


def _add_check(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    checking = actions.add_parser(
        "check",
        help="what is missing, wrong, ambiguous or leaked",
        description="Compares the members of all groups with the tree. Changes nothing.",
    )
    checking.set_defaults(run=_check)
    describe(
        checking,
        examples="""
            kelpie mappings check -b kop-1:9092 --zookeeper zk-1:2181
                compare
            kelpie mappings check -b kop-1:9092 --zookeeper zk-1:2181 --dump tree.txt
                and keep the tree for kelpie doctor --evidence
        """,
        statuses={
            ExitStatus.OK: "tree and members agree",
            ExitStatus.NO: "they differ",
            ExitStatus.NOT_KNOWN: "brokers or ZooKeeper could not be asked",
        },
    )
    _add_tree_options(checking)
    checking.add_argument(
        "--dump", metavar="FILE", help="write the tree to a file, for kelpie doctor --evidence"
    )
    add_json_option(checking, "mappings-check")
    add_connection_options(checking)


def _add_repair(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    repairing = actions.add_parser(
        "repair",
        help="write missing and wrong nodes, delete leaked ones",
        description="Writes nodes that are missing or wrong, and deletes those that no member has. Ambiguous "
        "ones stay. Prints the plan; --apply does it.",
    )
    repairing.set_defaults(run=_repair)
    describe(
        repairing,
        examples="""
            kelpie mappings repair -b kop-1:9092 --zookeeper zk-1:2181
                the plan
            kelpie mappings repair -b kop-1:9092 --zookeeper zk-1:2181 --grace 5m --apply
                do it
        """,
    )
    _add_tree_options(repairing)
    repairing.add_argument(
        "--grace",
        type=_grace,
        default=GRACE_S,
        metavar="TIME",
        help="how long a node must stay leaked before it is deleted: 5m; 60s if left out; 0: no time",
    )
    repairing.add_argument(
        "--groups-without-members",
        action="store_true",
        help="delete leaked nodes of groups without any member, too; consumers that only assign() need them",
    )
    add_repair_options(repairing)


def _add_tree_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--zookeeper",
        required=True,
        metavar="HOST:PORT[,…][/PATH]",
        help="the ZooKeeper of the brokers' metadata store",
    )
    parser.add_argument(
        "--root",
        type=node_path,
        default=KOP_ROOT,
        metavar="PATH",
        help="KoP's setting groupIdZooKeeperPath; %(default)s if left out",
    )
    parser.add_argument(
        "--zookeeper-timeout",
        type=seconds,
        default=LIMIT_S,
        metavar="S",
        help="seconds that reading the tree may take; %(default)g if left out",
    )


def _check(arguments: argparse.Namespace) -> int:
    settings, tree = settings_from(arguments), _tree(arguments)

    async def run() -> Plan:
        async with await Nodes.open(settings) as nodes:
            survey = await survey_mappings(nodes, tree)
            plan = check(survey, nodes, tree)
        if arguments.dump:
            export(arguments.dump, survey.listing(arguments.root))
        return plan.with_properties(arguments.command_config) if arguments.command_config else plan

    try:
        with progress("mappings", "comparing members and nodes"):
            plan = asyncio.run(run())
    except (CannotRepair, ClientError) as error:
        raise CommandError(str(error), ExitStatus.NOT_KNOWN) from None
    if arguments.json:
        print_json(mappings_document(plan))
    else:
        print(render(plan, text_width()))
    return ExitStatus.NO if plan.details["differs"] else ExitStatus.OK


def _repair(arguments: argparse.Namespace) -> int:
    options = MappingOptions(arguments.grace, arguments.groups_without_members)
    return run_repair(arguments, repair_mappings(_tree(arguments), options))


def _tree(arguments: argparse.Namespace) -> MappingTree:
    return MappingTree(arguments.zookeeper, arguments.root, arguments.zookeeper_timeout)


def _grace(text: str) -> float:
    return 0.0 if text == "0" else duration(text)
