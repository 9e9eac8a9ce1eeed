"""`spark`: a local session with the Kafka connector. `kafka`: the lab or real Kafka."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from kelpie.real import java, ports, spark_connector
from tests.java.clusters import clusters, kafka

__all__ = ["clusters", "kafka"]


@pytest.fixture(scope="package")
def spark(
    available: Callable[[], AbstractContextManager[None]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    with available():
        java.find()
        jars = spark_connector.jars()
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.bindAddress": ports.HOST,
        "spark.driver.host": ports.HOST,
        "spark.jars": ",".join(map(str, jars)),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SPARK_LOCAL_IP", ports.HOST)
        options = f"-XX:-UsePerfData -Djava.io.tmpdir={folder}"
        environment.setenv("PYSPARK_SUBMIT_ARGS", f"--driver-java-options '{options}' pyspark-shell")
        builder = SparkSession.builder.master("local[2]").appName("kelpie-tests")
        session = builder.config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    _end_jvm()


def _end_jvm() -> None:
    """`stop` leaves Spark's JVM running for the next session of this process."""
    gateway = SparkContext._gateway
    assert gateway is not None
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)
