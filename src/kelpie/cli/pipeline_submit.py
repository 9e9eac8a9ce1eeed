"""kelpie pipeline submit: runs the same commands with spark-submit, which gets Kelpie as a file."""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kelpie.cli.command import CommandError, CommandParser, describe, reads
from kelpie.cli.environment import JAVA_HOME, PYSPARK_PYTHON, SPARK_HOME
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.pipeline_run import add_run
from kelpie.cli.pipeline_stream import add_stream
from kelpie.cli.spark_session import MISSING, setting
from kelpie.places import Place, credentials

_ACTIONS = ("run", "stream")
_CLIENT, _CLUSTER = "client", "cluster"


def add_submit(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "submit",
        usage="kelpie pipeline submit --master MASTER [OPTIONS] -- [run|stream] OPTIONS OF THAT",
        help="run it with spark-submit: Spark's driver, too, may be on the cluster",
        description="Packs Kelpie into one file and calls spark-submit (SPARK_HOME's, or PySpark's) with it. "
        "What comes after -- are options of kelpie pipeline run, or of stream after that word.",
    )
    parser.set_defaults(run=submit)
    describe(
        parser,
        examples="""
            kelpie pipeline submit --master yarn --deploy-mode cluster -- --from /mnt/in --into /mnt/tables
                on YARN, the driver too
            kelpie pipeline submit --master spark://spark-1:7077 --print -- --from landing --into tables
                only print the command
        """,
        statuses={
            ExitStatus.OK: "done; else the exit status of spark-submit",
            ExitStatus.NOT_KNOWN: "the cluster cannot be reached",
        },
    )
    parser.add_argument(
        "--master", required=True, metavar="MASTER", help="spark://HOST:7077, yarn, k8s://https://HOST:6443"
    )
    parser.add_argument(
        "--deploy-mode",
        choices=(_CLIENT, _CLUSTER),
        default=_CLIENT,
        help="where the driver runs: here (client, if left out), or on the cluster",
    )
    parser.add_argument(
        "--conf", action="append", default=[], type=setting, metavar="NAME=VALUE", help="a setting of Spark"
    )
    parser.add_argument(
        "--archives", metavar="FILE#NAME", help="an environment with Python, for executors that lack one"
    )
    parser.add_argument(
        "--print", dest="show", action="store_true", help="print the command, and do not run it"
    )
    parser.add_argument(
        "options", nargs="*", metavar="OPTIONS", help="after --: options of run, or of stream"
    )
    reads(parser, SPARK_HOME, JAVA_HOME, PYSPARK_PYTHON)


def submit(arguments: argparse.Namespace) -> int:
    words, places = _checked(arguments.options)
    command = _command(arguments, words, places)
    if arguments.show:
        print(shlex.join(command))
        return 0
    try:
        return subprocess.run(command, check=False).returncode
    except OSError as error:
        raise CommandError(f"{command[0]}: {(error.strerror or str(error)).lower()}.") from None


def _checked(options: Sequence[str]) -> tuple[list[str], list[Place]]:
    """The arguments for the driver, and the places that they name.

    Parses them now, so that a mistake is reported here and not there.
    """
    words = list(options) if options and options[0] in _ACTIONS else ["run", *options]
    parser = CommandParser(prog="kelpie pipeline submit … --")
    actions = parser.add_subparsers(dest="action")
    add_run(actions)
    add_stream(actions)
    read = parser.parse_args(words)
    if read.master or read.conf or read.archives:
        raise CommandError("--master, --conf and --archives belong before the --: spark-submit is told them.")
    return words, [read.into, *read.sources]


def _command(arguments: argparse.Namespace, words: Sequence[str], places: Sequence[Place]) -> list[str]:
    try:
        from kelpie.pipeline.spark import cluster, shipping, spark_errors  # noqa: PLC0415 - Spark takes a second.
        from kelpie.pipeline.spark.session import (  # noqa: PLC0415
            JAVA_LOG,
            S3,
            jars_of,
            spark_home,
            uses_s3,
        )
        from kelpie.real import java  # noqa: PLC0415
        from kelpie.real.cluster_errors import Unavailable  # noqa: PLC0415
    except ImportError as error:
        raise CommandError(f"{MISSING} ({error})") from None
    on_cluster = arguments.deploy_mode == _CLUSTER
    try:
        standalone = cluster.addresses(arguments.master)
        if standalone and on_cluster:
            raise CommandError(
                "Standalone masters run no Python driver themselves: leave --deploy-mode out, and the driver "
                "runs here, or use YARN or Kubernetes."
            )
        if not arguments.show:
            java.find()
            cluster.reach(arguments.master)
    except Unavailable as error:
        raise CommandError(str(error)) from None
    except spark_errors.ClusterFault as error:
        raise CommandError(str(error), ExitStatus.NOT_KNOWN) from None
    python = os.environ.get("PYSPARK_PYTHON")
    if on_cluster and not arguments.archives:
        python = python or "python3"  # The path of this machine's Python means nothing there.
    settings = {"spark.pyspark.python": python or shipping.python_of(arguments.archives)}
    jars: list[Path] = []
    if uses_s3(places):
        settings |= credentials.for_java()
        try:
            jars = jars_of(S3)
        except Unavailable as error:
            raise CommandError(str(error)) from None
    if not on_cluster:
        settings["spark.pyspark.driver.python"] = sys.executable
        settings["spark.driver.extraJavaOptions"] = JAVA_LOG
    for name, value in arguments.conf:
        both = name == "spark.driver.extraJavaOptions" and name in settings
        settings[name] = f"{settings[name]} {value}" if both else value
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", arguments.master]
    command += ["--deploy-mode", arguments.deploy_mode, "--name", "kelpie"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    if arguments.archives:
        command += ["--archives", arguments.archives]
    if jars:
        command += ["--jars", ",".join(map(str, jars))]
    command += ["--py-files", str(shipping.package()), str(shipping.script())]
    return [*command, *words]
