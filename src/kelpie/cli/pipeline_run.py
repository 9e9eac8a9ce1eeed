"""kelpie pipeline run: files into tables, once."""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from kelpie.api.tables import check_sources, is_small, prepare_tables
from kelpie.cli.command import CommandError, describe
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.keep_option import add_keep_option, keep_of
from kelpie.cli.log_options import add_log_options, hints_of
from kelpie.cli.pipeline_progress import ProgressLine
from kelpie.cli.pipeline_summary import render
from kelpie.cli.place_options import add_into_option, place
from kelpie.cli.spark_session import MISSING, add_spark_options, spark_for
from kelpie.documents.pipeline_run import pipeline_run_document
from kelpie.model.kelpie_error import KelpieError
from kelpie.places import Place


def add_run(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "run",
        help="take in files, and make all tables that follow",
        description="Recognises each file below the folders, takes in those that are new, and makes all "
        "tables that follow. It says which files it could not use and why. Run it again when there is more: "
        "a file counts once.",
    )
    parser.set_defaults(run=run)
    describe(
        parser,
        examples="""
            kelpie pipeline run --from /mnt/broker-1/data logs.tar.xz --into tables
                disks, logs and all that an archive holds
            kelpie pipeline run --from landing --into tables --master spark://spark-1:7077
                on a cluster
            kelpie pipeline run --from landing --into tables --keep 90d --keep gold=2y
                older rows go
        """,
        statuses={
            ExitStatus.OK: "done",
            ExitStatus.NO: "no file was of any use",
            ExitStatus.NOT_KNOWN: "Spark could not do it",
        },
    )
    parser.add_argument(
        "--from",
        dest="sources",
        nargs="+",
        action="extend",
        required=True,
        type=place,
        metavar="DIR",
        help="folders of brokers' data, of mixed evidence, single files, archives of these: paths, or "
        "hdfs://HOST:PORT/…, s3://BUCKET/…",
    )
    add_into_option(parser)
    parser.add_argument(
        "--cluster",
        metavar="NAME",
        help="what to call the cluster; its id if left out and a disk tells it, else the folder's name",
    )
    add_keep_option(parser)
    add_log_options(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, only the summary")
    add_json_option(parser, "pipeline-run", "print the summary as JSON")
    add_spark_options(parser)


def run(arguments: argparse.Namespace) -> int:
    sources = [path.absolute() for path in arguments.sources]
    into = arguments.into.absolute()
    hints = hints_of(arguments)
    with told():
        check_sources(sources, into, dict(arguments.conf))
    try:
        from kelpie.pipeline.run import run as run_pipeline  # noqa: PLC0415
        from kelpie.pipeline.summary import Summary  # noqa: PLC0415 - Spark takes a second to import.
    except ImportError as error:
        raise CommandError(f"{MISSING} ({error})") from None
    prepare(into, arguments.conf)
    summary = Summary()
    progress = ProgressLine(summary, sys.stderr, quiet=arguments.quiet)
    began = time.monotonic()
    try:
        with (
            progress.shown(),
            spark_for(
                arguments,
                brief=is_small(sources),
                sources=sources,
                into=into,
                keep_classes=True,
                announce=progress,
            ) as spark,
        ):
            from kelpie.pipeline.spark.session import active_tasks  # noqa: PLC0415
            from kelpie.pipeline.storage.lake import Lake  # noqa: PLC0415

            summary.seconds["start of Spark"] = time.monotonic() - began
            progress.watch(partial(active_tasks, spark.sparkContext))
            run_pipeline(
                spark,
                Lake(into),
                sources,
                cluster=arguments.cluster,
                hints=hints,
                announce=progress,
                summary=summary,
                keep=keep_of(arguments),
            )
    except OSError as error:
        if arguments.debug:
            raise
        raise CommandError(f"{error.filename or into}: {error.strerror or error}.") from None
    except KeyboardInterrupt:
        print("kelpie pipeline: interrupted; the next run goes on where this one was.", file=sys.stderr)
        return ExitStatus.INTERRUPTED
    if arguments.json:
        print_json(pipeline_run_document(summary, arguments.into))
    else:
        print(render(summary, arguments.into))
    if summary.files == 0 or (summary.new_files and not summary.by_kind):
        print("kelpie pipeline: no file was of any use.", file=sys.stderr)
        return ExitStatus.NO
    return ExitStatus.OK


def prepare(into: Place, settings: Iterable[tuple[str, str]]) -> None:
    """The folder of the tables. `settings`: those of Spark. Raises CommandError."""
    with told("--into "):
        prepare_tables(into, dict(settings))


@contextmanager
def told(option: str = "") -> Iterator[None]:
    """Around checks, whose errors a user can mend. `option`: what the text begins with."""
    try:
        yield
    except KelpieError as error:
        raise CommandError(f"{option}{error}") from None
