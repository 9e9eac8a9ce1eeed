"""kelpie where: from a group's name to its partition of the offsets topic, to the broker that leads it."""

import argparse
from collections.abc import Sequence

from kelpie.cli.command import CommandError, describe
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.offsets_topic import add_topic_options, topic_of
from kelpie.cli.terminal import terminal_width
from kelpie.cli.text_table import text_table
from kelpie.cluster.whereabouts import Whereabouts, whereabouts
from kelpie.documents.where import where_document
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
    add_json_option(parser, "where")
    add_topic_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    cluster = topic_of(arguments)
    if cluster is None:
        raise CommandError("Where should it look? Give -b HOST:PORT, --describe FILE, or --partitions N.")
    places = [whereabouts(cluster, group) for group in dict.fromkeys(arguments.groups)]
    if arguments.json:
        assert cluster.offsets_partitions
        print_json(where_document(places, cluster.offsets_partitions))
    elif cluster.views:
        print(text_table([_HEAD, *map(_row, places)], terminal_width()))
    else:
        print(text_table([_HEAD[:3], *(_row(place)[:3] for place in places)], terminal_width()))
    return ExitStatus.OK if all(place.is_led for place in places) else ExitStatus.NO


def _row(place: Whereabouts) -> tuple[str, ...]:
    begin = (harmless(place.group), str(place.hash), str(place.partition))
    view = place.view
    if view is None:
        return (*begin, "?", "?", "?", place.verdict)
    return (
        *begin,
        place.leader or "none",
        _nodes(view.replicas) or "?",
        _nodes(view.in_sync) or "none",
        place.verdict,
    )


def _nodes(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes))
