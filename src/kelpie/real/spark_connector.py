"""Spark's Kafka connector, spark-sql-kafka-0-10, fetched the way Kafka is.

Spark's own `spark.jars.packages` would resolve it through POMs, anew for every cache. These jars are pinned;
who has others puts them on Spark's class path and does not come here.
"""

from collections.abc import Callable
from pathlib import Path

from kelpie.real import fetch, releases

VERSION = "4.2.0"
_NAME = f"spark-kafka-{VERSION}"


def jars(announce: Callable[[str], None] | None = None) -> list[Path]:
    """What `spark.jars` has to name. Raises `Unavailable`."""
    title = f"Spark's Kafka connector {VERSION}"
    folder = fetch.libraries(_NAME, releases.pinned(_NAME), title=title, announce=announce)
    return sorted(folder.glob("*.jar"))
