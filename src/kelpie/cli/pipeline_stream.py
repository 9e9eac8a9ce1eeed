"""kelpie pipeline stream: the tables of a live cluster, kept up to date."""

import argparse
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from kelpie.api.tables import is_small
from kelpie.cli.amounts import duration
from kelpie.cli.command import CommandError, describe
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.keep_option import add_keep_option, keep_of
from kelpie.cli.log_options import add_log_options, hints_of
from kelpie.cli.pipeline_run import prepare
from kelpie.cli.pipeline_summary import render
from kelpie.cli.place_options import add_into_option, place
from kelpie.cli.spark_session import add_spark_options, spark_for
from kelpie.client import java_properties
from kelpie.documents.pipeline_run import pipeline_run_document

if TYPE_CHECKING:
    from kelpie.pipeline.stream import Topic

_EVERY_S = 30.0
_ENOUGH = "Nothing to read: name folders with --from, or a broker with -b."


def add_stream(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "stream",
        help="go on and on: the offsets topic of a live cluster, and folders that grow",
        description="Reads the offsets topic as it is written and takes in what is new in the folders, again "
        "and again, and makes all tables that follow; at most a quarter of its time goes into those. It may "
        "be killed at any moment: the next start goes on where it was, and each input counts once. Ctrl-C "
        "ends it after the round that is under way, with tables of all that has come; a second one, at once.",
    )
    parser.set_defaults(run=run)
    describe(
        parser,
        examples="""
            kelpie pipeline stream --from landing -b kafka-1:9092 --into tables
                the live offsets topic, and what kelpie collect writes
            kelpie pipeline stream --from landing --into tables --once
                what is there now
        """,
        statuses={
            ExitStatus.OK: "it ended as asked",
            ExitStatus.NOT_KNOWN: "Spark could not do it",
        },
    )
    parser.add_argument(
        "--from",
        dest="sources",
        nargs="+",
        action="extend",
        default=[],
        type=place,
        metavar="DIR",
        help="folders that grow: what kelpie collect writes, logs, data of brokers; paths, or "
        "hdfs://HOST:PORT/…, s3://BUCKET/…",
    )
    add_into_option(parser)
    parser.add_argument(
        "--cluster",
        metavar="NAME",
        help="what to call the cluster; its id if left out and a broker tells it, else the folder's name",
    )
    parser.add_argument(
        "--every",
        type=duration,
        default=_EVERY_S,
        metavar="TIME",
        help=f"from the start of a round to the next: 10s, 5m; {_EVERY_S:g}s if left out",
    )
    parser.add_argument("--once", action="store_true", help="what is there now, then end")
    add_keep_option(parser)
    add_log_options(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    add_json_option(parser, "pipeline-run", "with --once: print the summary as JSON")
    add_spark_options(parser)
    add_connection_options(parser, instead=("sources",))


def run(arguments: argparse.Namespace) -> int:
    has_topic = bool(arguments.bootstrap_server or arguments.command_config)
    if not arguments.sources and not has_topic:
        raise CommandError(_ENOUGH)
    hints = hints_of(arguments)
    announce = (lambda _: None) if arguments.quiet else _announce
    topic = _topic(arguments) if has_topic else None
    into, sources = arguments.into.absolute(), [path.absolute() for path in arguments.sources]
    prepare(into, arguments.conf)
    with spark_for(
        arguments,
        brief=arguments.once and is_small([*arguments.sources, into]),
        sources=sources,
        into=into,
        topic=has_topic,
        announce=announce,
    ) as spark:
        from kelpie.pipeline.storage.lake import Lake  # noqa: PLC0415 - Spark takes a second to import.
        from kelpie.pipeline.stream import Stream, TopicFailed  # noqa: PLC0415

        stream = Stream(
            spark,
            Lake(into),
            cluster=arguments.cluster or _name(arguments, topic),
            folders=sources,
            topic=topic,
            every_s=arguments.every,
            hints=hints,
            announce=announce,
            keep=keep_of(arguments),
        )
        try:
            if arguments.once:
                summary = stream.once()
            else:
                stream.run(_until_interrupted())
        except TopicFailed as failure:
            raise CommandError(f"The offsets topic cannot be read: {failure}") from None
    if arguments.once and arguments.json:
        print_json(pipeline_run_document(summary, arguments.into))
    elif arguments.once:
        print(render(summary, arguments.into))
    return ExitStatus.OK


def _topic(arguments: argparse.Namespace) -> "Topic":
    from kelpie.pipeline.stream import Topic  # noqa: PLC0415 - Spark takes a second to import.

    settings = settings_from(arguments)
    config: str | None = arguments.command_config
    known = java_properties.parse(Path(config).read_bytes(), config) if config else {}
    return Topic(settings.bootstrap_servers, known, Path(config) if config else None)


def _name(arguments: argparse.Namespace, topic: "Topic | None") -> str:
    if topic is not None:
        from kelpie.client.client_errors import ClientError  # noqa: PLC0415
        from kelpie.pipeline.sources.topic.ends import ask_topic_ends  # noqa: PLC0415

        try:
            known = ask_topic_ends(settings_from(arguments)).cluster_id
        except ClientError as error:
            if not arguments.sources:
                raise CommandError(
                    f"{error} Give the cluster a name with --cluster to wait for it."
                ) from None
            known = None
        if known:
            return known
    if arguments.sources:
        name: str = arguments.sources[0].absolute().name
        return name
    raise CommandError("This cluster tells no id: give it a name with --cluster.")


def _until_interrupted() -> threading.Event:
    """An event that the first signal sets. The second signal kills the process, which is safe."""
    stopped = threading.Event()

    def stop(number: int, _: object) -> None:
        stopped.set()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    return stopped


def _announce(text: str) -> None:
    print(f"kelpie pipeline: {text}", file=sys.stderr, flush=True)
