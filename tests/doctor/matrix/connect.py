"""Workers of Kafka Connect 4.3.1, and a sink connector that writes the readers' topic to nowhere.

Workers form a group of their own, with protocol type "connect": it spreads connectors and tasks over them,
and commits nothing. The tasks of a sink connector are members of another one, "connect-" and its name.
"""

import json
import time
import urllib.error
import urllib.request
from pathlib import Path

from kelpie.real import fetch, java, ports, releases
from kelpie.real.cluster import RealCluster
from tests.doctor.matrix.kinds import CONNECT, SINK, TOPIC

_RELEASE = "4.3.1"
_MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
_TEXT = "org.apache.kafka.connect.storage.StringConverter"
_SETTINGS = f"""bootstrap.servers={{servers}}
group.id={CONNECT}
client.id=connect-{{number}}
listeners=http://{ports.HOST}:{{port}}
key.converter={_TEXT}
value.converter={_TEXT}
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
offset.storage.partitions=1
status.storage.topic=connect-status
status.storage.partitions=1
plugin.discovery=service_load
offset.flush.interval.ms=5000
session.timeout.ms=10000
heartbeat.interval.ms=1000
scheduled.rebalance.max.delay.ms=10000
consumer.session.timeout.ms=10000
consumer.heartbeat.interval.ms=1000
"""
_CONNECTOR = SINK.removeprefix("connect-")
_CONNECTOR_SETTINGS = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "tasks.max": "2",
    "topics": TOPIC,
    "file": "/dev/null",
}
_LIMIT_S = 400.0


def worker(cluster: RealCluster, number: int, port: int) -> list[str]:
    """The command that runs one of them. Its REST interface listens on this port."""
    settings = cluster.root / f"connect-{number}.properties"
    settings.write_text(_SETTINGS.format(servers=cluster.bootstrap_servers, number=number, port=port))
    own = releases.pinned(f"connect-{_RELEASE}", Path(__file__).parent)
    folders = (
        fetch.libraries(f"connect-{_RELEASE}", own, title=f"Kafka Connect {_RELEASE}"),
        fetch.libraries(_RELEASE, releases.find(_RELEASE).jars),
    )
    classpath = ":".join(f"{folder}/*" for folder in folders)
    return [*java.command(classpath, _MAIN, heap_mb=256), str(settings)]


def start_sink(port: int) -> None:
    """Asks a worker for it again and again, until it is there to answer."""
    deadline = time.monotonic() + _LIMIT_S
    asked = urllib.request.Request(
        f"http://{ports.HOST}:{port}/connectors/{_CONNECTOR}/config",
        json.dumps(_CONNECTOR_SETTINGS).encode(),
        {"Content-Type": "application/json"},
        method="PUT",
    )
    while True:
        try:
            urllib.request.urlopen(asked, timeout=_LIMIT_S).close()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return
