"""The offsets topic of a live cluster into bronze tables, as a stream or in one batch.

    raw = open_topic(spark, "kafka-1:9092", streaming=True)
    raw.writeStream.foreachBatch(lambda rows, number: take_in(lake, rows, …, version=number)).start()

Two sources give the same rows: Spark's own (spark-sql-kafka-0-10), and Kelpie's, which also reads Kafka 0.9
and topics with leaderless partitions. Both read committed records only. Tasks decode the records and write
Parquet files, and the driver adds the files to the tables, as with segments: to send decoded rows from Python
to the JVM would cost more than to decode them.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.
from pyspark.sql.pandas.types import from_arrow_schema

from kelpie.client.properties import settings_of
from kelpie.observations import OFFSETS_TOPIC
from kelpie.pipeline.sources.segments.files import FILLED
from kelpie.pipeline.sources.segments.intake import Ingested
from kelpie.pipeline.sources.topic.data_source import (
    MOST,
    NAME,
    PROPERTIES_FILE,
    STARTING,
    TASKS,
    OffsetsTopic,
)
from kelpie.pipeline.sources.topic.ends import Epochs, TopicEnds, ask_epochs, ask_topic_ends
from kelpie.pipeline.sources.topic.rows import RAW, address_of
from kelpie.pipeline.storage.journal import Journal
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.parquet import NewFile

SPARK, KELPIE = "spark", "kelpie"
_KAFKA = "kafka."
_IMPATIENT = {
    "fetchOffset.numRetries": "2",
    "kafka.default.api.timeout.ms": "15000",
    "kafka.request.timeout.ms": "10000",
    "kafkaConsumer.pollTimeoutMs": "30000",
}
"""By default, Spark's source waits minutes for a partition without a leader before it fails."""
_FILES = "table string, file string"
_log = logging.getLogger(__name__)


def open_topic(
    spark: SparkSession,
    bootstrap: str,
    *,
    streaming: bool,
    properties: Mapping[str, str] | None = None,
    properties_file: Path | None = None,
    starting: str | Mapping[int, int] = "earliest",
    most_per_trigger: int | None = None,
    through: str | None = None,
) -> DataFrame:
    """Undecoded records: rows of `rows.RAW`.

    `starting`: "earliest", "latest", or offsets by partition. Spark's source needs an offset for each
    partition; Kelpie's begins at 0 where there is none. `properties`: those of a Kafka client.
    `properties_file`: where they are from, if tasks see that file; then Kelpie's source gives tasks its name,
    and no password. `through`: SPARK or KELPIE; None asks the cluster once (`fitting`).
    Raises ClientError and BadSettings.
    """
    client_properties = _plain(properties)
    options = {_KAFKA + name: value for name, value in client_properties.items()} | {
        f"{_KAFKA}bootstrap.servers": bootstrap
    }
    options[STARTING] = _starting(starting)
    if most_per_trigger is not None and streaming:
        options[MOST] = str(most_per_trigger)
    topic_ends = ask_topic_ends(settings_of(client_properties, bootstrap))
    if (through or fitting(topic_ends)) == SPARK:
        try:
            return _by_spark(
                spark, options, sorted({*topic_ends.ends, *topic_ends.missing}), streaming=streaming
            )
        except AnalysisException as error:
            if "kafka" not in str(error).lower():
                raise
            _log.warning(
                "Spark's Kafka source is not on its class path: Kelpie's own reads the offsets topic. (%s)",
                str(error).splitlines()[0],
            )
    if properties_file is not None:
        options = {name: value for name, value in options.items() if not name.startswith(_KAFKA)} | {
            f"{_KAFKA}bootstrap.servers": bootstrap,
            PROPERTIES_FILE: str(properties_file.absolute()),
        }
    spark.dataSource.register(OffsetsTopic)
    reader = spark.readStream if streaming else spark.read
    return reader.format(NAME).options(**options).option(TASKS, _cores(spark)).load()


def fitting(topic_ends: TopicEnds) -> str:
    """SPARK, or KELPIE if the cluster is too old for Spark's source, or a partition cannot be read now.

    Spark's source waits for every partition, and then fails.
    """
    return SPARK if topic_ends.tells_versions and topic_ends.ends and not topic_ends.missing else KELPIE


def leader_epochs(bootstrap: str, properties: Mapping[str, str] | None = None) -> Epochs:
    """For `take_in`. Call it for every batch, after its rows were planned. Raises BadSettings."""
    return ask_epochs(settings_of(_plain(properties), bootstrap))


def take_in(
    lake: Lake,
    raw: DataFrame,
    *,
    cluster: str,
    application: str,
    version: int,
    epochs: Epochs | None = None,
) -> Ingested:
    """Takes in these records as one batch, whose number the caller gives; a second call adds nothing.

    `epochs`: see `leader_epochs`. Without them, a record that Spark's source read and another one that a dead
    leader's disk has at the same offset cannot be told apart. Raises Conflict.
    """
    for table in FILLED:
        lake.open(table)
    journal = Journal(lake, application)
    page = journal.finish()
    if page is None or page.number < version:
        folders = {table.name: str(lake.path(table)) for table in FILLED}
        few = raw.coalesce(_cores(raw.sparkSession))
        files: dict[str, list[NewFile]] = {table.name: [] for table in FILLED}
        known_epochs = dict(epochs or {})

        def task(batches):  # type: ignore[no-untyped-def]
            from kelpie.pipeline.sources.topic.task import write  # noqa: PLC0415 - not in the driver.

            return write(batches, folders, cluster, known_epochs)

        for row in few.mapInArrow(task, _FILES).collect():
            files[row["table"]].append(NewFile(**json.loads(row["file"])))
        page = journal.record(version, files)
        journal.finish()
    return Ingested(rows=page.rows if page.number == version else {})


def _by_spark(
    spark: SparkSession, options: Mapping[str, str], partitions: Sequence[int], *, streaming: bool
) -> DataFrame:
    # Without this setting, Spark's source silently leaves out internal topics. It holds for a whole session,
    # so the source gets one of its own.
    session = spark.newSession()
    session.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
    reader = session.readStream if streaming else session.read
    frame = (
        reader.format("kafka")
        .options(**{**_IMPATIENT, **options})
        .option("assign", json.dumps({OFFSETS_TOPIC: list(partitions)}))  # A subscription would join a group.
        .option("kafka.isolation.level", "read_committed")
        .option("failOnDataLoss", "false")  # Compaction and deletion move the start of the log.
        .load()
    )
    address = address_of(options[f"{_KAFKA}bootstrap.servers"])
    source = F.concat(F.lit(f"{OFFSETS_TOPIC}-"), F.col("partition"), F.lit(f"@{address}"))
    columns = {
        "offsets_partition": F.col("partition"),
        "log_offset": F.col("offset"),
        "written": F.col("timestamp"),
        "key": F.col("key"),
        "value": F.col("value"),
        "source": source,
    }
    schema = from_arrow_schema(RAW, prefer_timestamp_ntz=False)
    return frame.select(
        *(columns.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in schema)
    )


def _plain(properties: Mapping[str, str] | None) -> dict[str, str]:
    """Spark's options have the prefix "kafka."; a file of properties has not."""
    return {name.removeprefix(_KAFKA): value for name, value in (properties or {}).items()}


def _cores(spark: SparkSession) -> int:
    return spark.sparkContext.defaultParallelism


def _starting(starting: str | Mapping[int, int]) -> str:
    if isinstance(starting, str):
        return starting
    return json.dumps({OFFSETS_TOPIC: {str(partition): offset for partition, offset in starting.items()}})
