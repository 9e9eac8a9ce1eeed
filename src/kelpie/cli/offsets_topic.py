"""How commands learn what the offsets topic looks like: from a cluster, a describe output, or a number."""

import argparse
import asyncio
from pathlib import Path

from kelpie.api.whereabouts import USUAL_PARTITIONS, described_topic, offsets_topic
from kelpie.cli.command import CommandError, option
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.progress import progress
from kelpie.cluster import ClusterView
from kelpie.model.kelpie_error import KelpieError
from kelpie.observations import OFFSETS_TOPIC


def add_topic_options(parser: argparse.ArgumentParser) -> None:
    option(
        parser,
        "--partitions N",
        f"how many partitions {OFFSETS_TOPIC} has, without looking; {USUAL_PARTITIONS} is usual",
        type=int,
    )
    option(parser, "--describe FILE", "what kafka-topics --describe printed, instead of a cluster", type=Path)
    add_connection_options(parser, instead=("partitions", "describe"))


def topic_of(arguments: argparse.Namespace) -> ClusterView | None:
    """The cluster as the options let it be seen; None if they name none. Raises CommandError."""
    online = arguments.bootstrap_server is not None or arguments.command_config is not None
    given = {
        "--partitions": arguments.partitions is not None,
        "--describe": arguments.describe is not None,
        "-b": online,
    }
    chosen = [option for option, is_given in given.items() if is_given]
    if len(chosen) > 1:
        raise CommandError(f"{' and '.join(chosen)} contradict each other; choose one.")
    if arguments.partitions is not None:
        if arguments.partitions < 1:
            raise CommandError(f"--partitions {arguments.partitions}: a topic has at least one.")
        return ClusterView(now=0, offsets_partitions=arguments.partitions)
    if arguments.describe is not None and not arguments.describe.is_file():
        raise CommandError(f"{arguments.describe} is no file. Give it the output of kafka-topics --describe.")
    try:
        if arguments.describe is not None:
            return described_topic(arguments.describe)
        if not online:
            return None
        with progress(arguments.command, "asking brokers"):
            return asyncio.run(offsets_topic(settings_from(arguments)))
    except KelpieError as error:
        status = ExitStatus.NOT_KNOWN if arguments.describe is None else ExitStatus.USAGE
        raise CommandError(str(error), status) from None
