"""Kafka's own demonstration of Kafka Streams, as an application with the Streams protocol (KIP-1071)."""

from kelpie.real import fetch, java
from kelpie.real.cluster import RealCluster
from kelpie.real.releases import Jar

_MAIN = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
_JARS = (
    Jar(
        "org.apache.kafka",
        "kafka-streams",
        "4.3.1",
        "bd73f3805e116f711e8456ee89a8a5b43ff5dcf5a5bb865afae29deae89e7c4b",
    ),
    Jar(
        "org.apache.kafka",
        "kafka-streams-examples",
        "4.3.1",
        "6463ef446d45504bf65fa4208f1b4bcce1c7559152f6f7294e2e1f3c08e28420",
    ),
)
"""Without RocksDB: the application keeps its counts in memory."""
_SETTINGS = """application.id=streams
client.id=streams-{number}
bootstrap.servers={servers}
group.protocol=streams
state.dir={folder}
default.dsl.store=in_memory
dsl.store.suppliers.class=org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers
commit.interval.ms=1000
replication.factor=3
auto.offset.reset=earliest
"""


def application(cluster: RealCluster, number: int) -> list[str]:
    """The command that runs one of its processes."""
    folder = cluster.root / f"streams-{number}"
    folder.mkdir(exist_ok=True)
    settings = folder / "streams.properties"
    settings.write_text(_SETTINGS.format(number=number, servers=cluster.bootstrap_servers, folder=folder))
    own = fetch.libraries("streams-4.3.1", _JARS, title="Kafka Streams 4.3.1")
    jars = fetch.libraries(cluster.release.version, cluster.release.jars)
    return [*java.command(f"{own}/*:{jars}/*", _MAIN, heap_mb=192), str(settings)]
