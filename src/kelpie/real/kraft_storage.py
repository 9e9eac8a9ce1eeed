"""What KRaft wants in a data folder before a node's first start.

Each node has an identity, and the first controller the first records of the quorum: the features of the
release and their levels. Kafka's own tool (kafka-storage) writes both, but its JVM takes half as long as the
start of a broker. An identity is four lines. The first records of a release are always the same, so those
that the tool has written once are kept beside the jars.
"""

import base64
import contextlib
import os
import uuid
from pathlib import Path

_RECORDS = "bootstrap.checkpoint"


def identify(data: Path, cluster_id: str, node_id: int) -> None:
    data.mkdir()
    (data / "meta.properties").write_text(
        f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={random_id()}\n"
    )


def first_records(libraries: Path) -> bytes | None:
    """Those of the release with these jars, if its tool has ever written them here."""
    try:
        return _kept(libraries).read_bytes()
    except OSError:
        return None


def begin(data: Path, records: bytes) -> None:
    (data / _RECORDS).write_bytes(records)


def keep_first_records(data: Path, libraries: Path) -> None:
    """Keep those that the tool has written. Where nothing can be kept, the tool is run again next time."""
    kept = _kept(libraries)
    part = kept.with_name(f"{kept.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        part.write_bytes((data / _RECORDS).read_bytes())
        part.rename(kept)


def random_id() -> str:
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):  # The tools would take it for an option.
            return text


def _kept(libraries: Path) -> Path:
    return libraries.with_name(f".{libraries.name}.{_RECORDS}")
