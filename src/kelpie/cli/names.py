"""kelpie names: names of groups that live on a given partition of the offsets topic.

To try whether a partition is sick, or to place a probe beside a stricken group, one needs a name that hashes
to it. The same question always gets the same names.
"""

import argparse
import sys

from kelpie.api.whereabouts import USUAL_PARTITIONS, names
from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.offsets_topic import add_topic_options, topic_of
from kelpie.documents.names import NamesDocument
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.partitioning import PROBE_PREFIX
from kelpie.observations import OFFSETS_TOPIC

_MOST = 1_000_000


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "names",
        description="Prints names that hash to a partition of __consumer_offsets, one a line.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie names --partition 43
                ten names on partition 43 of 50
            kelpie names --partition 3 --partitions 10 -n 1 --prefix test-
                one, in a topic of ten partitions
        """,
        statuses={
            ExitStatus.OK: "the names are printed",
            ExitStatus.NOT_KNOWN: "no broker answered",
        },
    )
    option(parser, "--partition P", "the partition", type=int, required=True)
    option(parser, "-n --number N", "how many; %(default)s if left out", type=int, default=10)
    option(parser, "--prefix TEXT", "how they begin; %(default)s if left out", default=PROBE_PREFIX)
    add_json_option(parser, "names")
    add_topic_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    cluster = topic_of(arguments)
    partitions = cluster.offsets_partitions if cluster is not None else USUAL_PARTITIONS
    assert partitions
    if cluster is None:
        print(
            f"kelpie names: {OFFSETS_TOPIC} is taken to have {partitions} partitions; -b, --describe or "
            "--partitions says otherwise.",
            file=sys.stderr,
        )
    if not 0 < arguments.number <= _MOST:
        raise CommandError(f"-n {arguments.number}: choose 1 to {_MOST:,} names.")
    try:
        found = names(
            arguments.partition, partitions=partitions, count=arguments.number, prefix=arguments.prefix
        )
    except KelpieError as error:
        raise CommandError(str(error)) from None
    if arguments.json:
        document: NamesDocument = {
            "version": 1,
            "partition": arguments.partition,
            "partitions": partitions,
            "names": list(found),
        }
        print_json(document)
    else:
        for name in found:
            print(name)
    return ExitStatus.OK
