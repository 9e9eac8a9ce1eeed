"""Data folders of KRaft that are written without Kafka's tool."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kelpie.real import fetch, kraft_storage
from kelpie.real.cluster import RealCluster
from kelpie.wire.records.batches import read_all_records


def records(checkpoint: bytes) -> list[tuple[bytes, bytes]]:
    """Keys and values; the first one holds the time of the writing, which differs."""
    return [(record.key or b"", record.value or b"") for record in read_all_records(checkpoint)][1:]


@pytest.mark.real
def test_first_records_are_those_that_the_tool_writes(
    real_kafka: Callable[..., RealCluster], tmp_path: Path
) -> None:
    """A cluster without them would have other features than the release gives to everybody."""
    cluster = real_kafka("4.3.1")
    kept = kraft_storage.first_records(fetch.libraries("4.3.1", cluster.release.jars))
    config = tmp_path / "server.properties"
    lines = cluster.brokers[0].config.read_text().splitlines()
    config.write_text("\n".join([*lines, f"log.dirs={tmp_path / 'data'}"]))

    cluster.tool("kafka-storage", "format", "-t", kraft_storage.random_id(), "-c", str(config))

    assert kept is not None
    written = (tmp_path / "data" / "bootstrap.checkpoint").read_bytes()
    assert any(b"group.version" in value for _, value in records(written))
    assert records(kept) == records(written)


def test_what_cannot_be_kept_is_written_by_the_tool_again(tmp_path: Path) -> None:
    """A cache may be read-only, and a broken one must not break a cluster."""
    data, libraries = tmp_path / "data", tmp_path / "no-such-cache" / "4.3.1"
    kraft_storage.identify(data, kraft_storage.random_id(), 1)
    kraft_storage.begin(data, b"records")
    kraft_storage.keep_first_records(data, libraries)
    assert kraft_storage.first_records(libraries) is None
    libraries.parent.mkdir()
    kraft_storage.keep_first_records(data, libraries)
    assert kraft_storage.first_records(libraries) == b"records"
