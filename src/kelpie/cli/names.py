"""kelpie names: names of groups that live on a given partition of the offsets topic.

To try whether a partition is sick, or to place a probe beside a stricken group, one needs a name that hashes
to it. The same question always gets the same names.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import count, islice
from string import ascii_lowercase

from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.offsets_topic import USUAL_PARTITIONS, add_topic_options, topic_of
from kelpie.model.partitioning import partition_for
from kelpie.observations import OFFSETS_TOPIC

_PREFIX = "probe-"
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
    option(parser, "--prefix TEXT", "how they begin; %(default)s if left out", default=_PREFIX)
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
    if not 0 <= arguments.partition < partitions:
        raise CommandError(
            f"There is no partition {arguments.partition}: {OFFSETS_TOPIC} has {partitions}, from 0 to "
            f"{partitions - 1}."
        )
    if not 0 < arguments.number <= _MOST:
        raise CommandError(f"-n {arguments.number}: choose 1 to {_MOST:,} names.")
    for name in islice(names_on(arguments.partition, partitions, arguments.prefix), arguments.number):
        print(name)
    return 0


def names_on(partition: int, partitions: int, prefix: str = _PREFIX) -> Iterator[str]:
    """Without end. Numbers after the prefix; letters too, where numbers alone never get there.

    The hash is a number to the base 31 whose last digit is the last letter. If the number of partitions is a
    multiple of 31, that letter and the sign of the hash decide alone, and ten digits do not reach all.
    """

    def on_partition(names: Iterable[str]) -> Iterator[str]:
        return (name for name in names if partition_for(name, partitions) == partition)

    if any(on_partition(f"{prefix}{number}" for number in range(100 * partitions))):
        yield from on_partition(f"{prefix}{number}" for number in count())
    yield from on_partition(f"{prefix}{number}{letter}" for number in count() for letter in ascii_lowercase)
