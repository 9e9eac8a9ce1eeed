"""Spark for a command: its options, its start, and its errors as messages for users."""

import argparse
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kelpie.cli.amounts import duration
from kelpie.cli.command import CommandError, reads
from kelpie.cli.environment import CACHE, HADOOP_CONF_DIR, JAVA_HOME, PYSPARK_PYTHON, REPOSITORY
from kelpie.cli.exit_status import ExitStatus
from kelpie.places import Place

MISSING = "The pipeline needs Spark: pip install 'kelpie-kafka[pipeline]'."
_PATIENCE_S = 120.0
_LAST_WORDS = 5


def add_spark_options(parser: argparse.ArgumentParser) -> None:
    reads(parser, JAVA_HOME, PYSPARK_PYTHON, CACHE, REPOSITORY, HADOOP_CONF_DIR)
    parser.add_argument(
        "--master",
        metavar="MASTER",
        help="where Spark runs: spark://HOST:7077, yarn, k8s://…, local[4]; this machine if left out",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=setting,
        metavar="NAME=VALUE",
        help="a setting of Spark: spark.executor.memory=4g; may be given again",
    )
    parser.add_argument(
        "--archives",
        metavar="FILE#NAME",
        help="an environment with Python for executors that lack one, packed with conda-pack or venv-pack",
    )
    parser.add_argument(
        "--wait",
        type=duration,
        default=_PATIENCE_S,
        metavar="TIME",
        help=f"how long to wait for a cluster's first executor: 30s, 5m; {_PATIENCE_S:g}s if left out",
    )
    parser.add_argument("--debug", action="store_true", help="all that Spark says, and whole stack traces")


def setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is no setting of Spark: write spark.NAME=VALUE")
    return name, value


@contextmanager
def spark_for(
    arguments: argparse.Namespace,
    *,
    brief: bool,
    sources: Sequence[Place],
    into: Place,
    topic: bool = False,
    keep_classes: bool = False,
    announce: Callable[[str], None] = lambda _: None,
) -> Iterator[Any]:
    """A session by the options, stopped at the end. Errors of Spark inside the block become CommandError.

    `sources`, `into`: what executors must see. `topic`: whether Spark needs its Kafka source.
    `keep_classes`: see `open_session`.
    """
    try:
        from kelpie.pipeline.spark import cluster, spark_errors  # noqa: PLC0415 - it takes a second.
        from kelpie.pipeline.spark.session import (  # noqa: PLC0415
            KAFKA,
            NOT_AUTHENTICATED,
            is_open_cluster,
            open_session,
        )
        from kelpie.real.cluster_errors import Unavailable  # noqa: PLC0415
    except ImportError as error:
        raise CommandError(f"{MISSING} ({error})") from None
    with tempfile.TemporaryDirectory(prefix="kelpie-spark-") as room:
        log = None if arguments.debug else Path(room) / "log"
        hush = None if arguments.debug else _hush()
        spark = None
        try:
            announce("starting Spark")
            spark = open_session(
                arguments.master,
                brief=brief,
                jars=(KAFKA,) if topic else (),
                places=[into, *sources],
                archives=arguments.archives,
                settings=dict(arguments.conf),
                log=log,
                announce=announce,
                keep_classes=keep_classes,
            )
            context = spark.sparkContext
            if is_open_cluster(context):
                print(f"kelpie: {NOT_AUTHENTICATED}", file=sys.stderr)
            if not cluster.is_local(context.master):
                cluster.check(context, sources, into, patience_s=arguments.wait, announce=announce)
            yield spark
        except (Unavailable, spark_errors.SeveralClusters) as error:
            raise CommandError(str(error)) from None
        except spark_errors.ClusterFault as error:
            raise CommandError(str(error), ExitStatus.NOT_KNOWN) from None
        except spark_errors.TABLES as error:
            if arguments.debug:
                raise
            raise CommandError(
                f"The tables in {into}: {spark_errors.brief(error)}", ExitStatus.NOT_KNOWN
            ) from None
        except spark_errors.SPARK as error:
            if arguments.debug:
                raise
            text = f"{spark_errors.explain(error)}{_last_words(log)} --debug shows all of it."
            raise CommandError(text, ExitStatus.NOT_KNOWN) from None
        finally:
            if spark is not None:
                with suppress(*spark_errors.SPARK, OSError):  # It may be dead.
                    spark.stop()
            if hush is not None:
                logging.getLogger().removeHandler(hush)


def _hush() -> logging.Handler:
    """Drops what py4j logs of interrupted calls: it raises these errors as well."""
    handler = logging.StreamHandler()
    handler.addFilter(lambda record: record.name != "root" and not record.name.startswith("py4j"))
    logging.getLogger().addHandler(handler)
    return handler


def _last_words(log: Path | None) -> str:
    """Error lines that Java printed before it died, if it did."""
    lines = log.read_text(errors="replace").splitlines() if log is not None and log.exists() else []
    errors = [
        line for line in lines if line.startswith(("Error", "Exception in", "#", "OpenJDK", "Unrecognized"))
    ]
    return "".join(f"\n  {line}" for line in errors[:_LAST_WORDS]) + ("\n" if errors else "")
