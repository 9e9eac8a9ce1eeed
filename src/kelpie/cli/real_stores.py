"""kelpie real store: a real S3 server, HDFS or YARN on this machine, for as long as the command runs."""

import argparse
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Mapping

from kelpie.cli.exit_status import ExitStatus

KINDS = ("s3", "hdfs", "yarn")
EXAMPLES = """
    kelpie real store s3
        an S3 server with one bucket
    kelpie real store yarn
        HDFS, and YARN to run Spark's applications on
"""


def add_store_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS, help="an S3 server; HDFS; HDFS with YARN")


def store(arguments: argparse.Namespace) -> int:
    """Prints how the servers are used, and ends them at Ctrl-C or SIGTERM."""
    from kelpie.real.hadoop import RealHadoop  # noqa: PLC0415 - other commands need neither.
    from kelpie.real.s3 import RealS3  # noqa: PLC0415

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    if arguments.kind == "s3":
        with RealS3(announce=_announce) as server:
            _tell(server.title, server.environment, f"{server.url}/tables", ended.wait)
        return ExitStatus.OK
    with RealHadoop(yarn=arguments.kind == "yarn", announce=_announce) as hadoop:
        environment = {"HADOOP_CONF_DIR": str(hadoop.configuration)}
        master = " --master yarn" if hadoop.has_yarn else ""
        _tell(hadoop.title, environment, f"{hadoop.url}/tables{master}", ended.wait)
    return ExitStatus.OK


def _tell(title: str, environment: Mapping[str, str], into: str, wait: Callable[[], object]) -> None:
    print(f"{title} is up on this machine until Ctrl-C. In another terminal:\n")
    for name, value in environment.items():
        print(f"  export {name}={shlex.quote(value)}")
    print(f"  kelpie pipeline run --from DIR --into {into}", flush=True)
    wait()


def _announce(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
