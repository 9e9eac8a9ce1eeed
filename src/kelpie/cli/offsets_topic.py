"""How commands learn what the offsets topic looks like: from a cluster, a describe output, or a number."""

import argparse
import asyncio
from pathlib import Path

from kelpie.cli.command import CommandError, option
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.progress import progress
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.cluster import ClusterView, build_cluster
from kelpie.evidence import read_evidence
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.picture import survey_cluster

USUAL_PARTITIONS = 50
"""offsets.topic.num.partitions, unless somebody has set it."""


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
    if arguments.describe is not None:
        return _described(arguments.describe)
    if not online:
        return None
    with progress(arguments.command, "asking brokers"):
        return asyncio.run(_looked_at(settings_from(arguments)))


def _described(path: Path) -> ClusterView:
    if not path.is_file():
        raise CommandError(f"{path} is no file. Give it the output of kafka-topics --describe.")
    cluster = build_cluster(read_evidence([path]))
    if not cluster.offsets_partitions:
        raise CommandError(
            f"{path} does not describe all partitions of {OFFSETS_TOPIC}. It should hold the output of: "
            f"kafka-topics --describe --topic {OFFSETS_TOPIC}"
        )
    return cluster


async def _looked_at(settings: Settings) -> ClusterView:
    try:
        async with await Nodes.open(settings) as nodes:
            cluster = await survey_cluster(nodes)
    except ClientError as error:
        raise CommandError(str(error), ExitStatus.NOT_KNOWN) from None
    if cluster.offsets_partitions is None:
        raise CommandError(f"No broker would describe {OFFSETS_TOPIC}.", ExitStatus.NOT_KNOWN)
    if cluster.offsets_partitions == 0:
        raise CommandError(
            f"This cluster has no {OFFSETS_TOPIC} yet; see kelpie explain KLP104.", ExitStatus.NOT_KNOWN
        )
    return cluster
