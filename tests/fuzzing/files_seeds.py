"""What is mutated: small pieces of real files, one or more of every kind that Kelpie reads.

Logs, outputs of tools, segments, scrapes and properties are cut out of the recordings; what `kelpie collect`
and repairs write is made by the code that writes it.
"""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kelpie.acknowledgements import written
from kelpie.evidence import read_evidence, snapshot_files, zookeeper_dumps
from kelpie.model.names import TopicPartition
from kelpie.observations.acknowledgement import Acknowledgement
from kelpie.observations.encoding import gathered, rows_of
from kelpie.observations.zookeeper_tree import ZooKeeperNode
from kelpie.repair import change_records, offsets_file
from kelpie.repair.change_records import ChangeRecord, OffsetsChange, ReplicasChange, StoredOffset
from kelpie.store import Store
from kelpie.store_files import StoreFiles
from kelpie.wire.records import Codec, ControlType, write_control_batch
from tests.evidence import unpacked
from tests.evidence.records import batch, commit, generation, group_removed, new_protocol
from tests.evidence.test_other_clients import FRANZ_GO, KAFKAJS, SARAMA, SPRING, STREAMS
from tests.evidence.test_other_group_tools import TRANSCRIPT

NEW, OLD = "kafka-4.3.1-coordinator-outage", "kafka-0.9.0.1-coordinator-outage"
ZOOKEEPER, KOP = "kafka-0.8.2.2-rebalance-failure", "kop-3.2-scrapes"
PIECE = 900
TIME = 1_794_793_788_619
CLUSTER = "c-1"
_TEXTS = (
    (NEW, "brokers/*.log"),
    (NEW, "brokers/*.properties"),
    (NEW, "clients/*.log"),
    (NEW, "commands/*.txt"),
    (OLD, "logs/*.log"),
    (OLD, "describe/*.txt"),
    (ZOOKEEPER, "consumers/*.log"),
    (ZOOKEEPER, "consumers/*.properties"),
    (KOP, "*.prom"),
    (KOP, "*.zk.txt"),
)
_FILES_OF_EACH = 6
_LINES_OF_A_LOG = 6
_ZKCLI = """[zk: localhost:2181(CONNECTED) 0] get /consumers/billing/offsets/orders/0
42
cZxid = 0x1f
ctime = Mon Nov 16 05:10:40 UTC 2026
mtime = Mon Nov 16 05:10:40 UTC 2026
ephemeralOwner = 0x0
[zk: localhost:2181(CONNECTED) 1] ls /brokers/ids
[0, 1, 2]
$ zkCli.sh -server zk:2181 get /consumers/billing/ids/billing_app-1-1794793788619-abcdef01
{"version":1,"subscription":{"orders":1},"pattern":"static","timestamp":"1794793788619"}
"""


class Seed(NamedTuple):
    kind: str
    name: str
    """Of the file: some readers look at it, too."""
    content: bytes


@cache
def seeds() -> tuple[Seed, ...]:
    return (*_texts(), *_other_clients(), *_segments(), *_surveys(), *_trees(), *_own_files(), *_archives())


def _texts() -> Iterator[Seed]:
    for recording, pattern in _TEXTS:
        files = sorted(unpacked(recording).glob(pattern))
        for path in files[:: 1 + len(files) // _FILES_OF_EACH]:
            content = path.read_bytes()
            for place in (0, len(content) // 2):
                begin = content.find(b"\n", place) + 1 if place else 0
                yield Seed("evidence", path.name, content[begin : begin + PIECE])


def _other_clients() -> Iterator[Seed]:
    """Logs of clients that no recording has, some lines a piece; outputs of tools for share groups."""
    for client, lines in (
        ("sarama", SARAMA),
        ("franz-go", FRANZ_GO),
        ("kafkajs", KAFKAJS),
        ("spring", SPRING),
        ("streams", STREAMS),
    ):
        for begin in range(0, len(lines), _LINES_OF_A_LOG):
            some = "\n".join(line for line, _, _ in lines[begin : begin + _LINES_OF_A_LOG])
            yield Seed("evidence", f"{client}.log", some.encode())
    yield Seed("evidence", "share-groups.txt", TRANSCRIPT.encode())


def _segments() -> Iterator[Seed]:
    name = "__consumer_offsets-3/00000000000000000000.log"
    for recording in (NEW, OLD):
        real = sorted(unpacked(recording).glob("segments/*/__consumer_offsets-*/*.log"))
        for path in real[:: 1 + len(real) // _FILES_OF_EACH]:
            yield Seed("evidence", name, path.read_bytes()[: 2 * PIECE])
    transactional = {"transactional": True, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    marker = write_control_batch(
        ControlType.COMMIT, offset=2, timestamp=TIME, producer_id=7, producer_epoch=0, coordinator_epoch=0
    )
    log = batch([commit("g", 1), commit("g", 2)], **transactional) + marker
    log += batch([generation("g", 3, {"m-1": [0, 1]}), group_removed("h"), commit("g", None)], base=3)
    log += batch(new_protocol("k", 4, {"m": [0]}), base=6)
    yield Seed("evidence", name, log)
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        yield Seed("evidence", name, batch([commit("g", n) for n in range(20)], codec=codec))
    yield Seed("evidence", "orders-1/00000000000000000005.log", log)
    yield Seed("evidence", "00000000000000000000.timeindex", bytes(24))


def _surveys() -> Iterator[Seed]:
    rows: dict[str, list[object]] = {}
    for name in (NEW, ZOOKEEPER, KOP):
        for kind, row in rows_of(read_evidence([unpacked(name)])):
            if len(rows.setdefault(kind, [])) < 1:
                rows[kind].append(row)
    few = gathered((kind, row) for kind, all_of_kind in rows.items() for row in all_of_kind)
    packed = snapshot_files.pack(snapshot_files.Header("c-1", TIME, TIME + 9, "b:9092"), few)
    yield Seed("evidence", "survey-1.jsonl.gz", packed)
    yield Seed("evidence", "survey-1.jsonl", gzip.decompress(packed))
    with tempfile.TemporaryDirectory() as folder:
        Store(Path(folder)).remember(CLUSTER, few, TIME)
        yield Seed("store", "store.sqlite3", StoreFiles(Path(folder), []).of(CLUSTER).read_bytes())


def _trees() -> Iterator[Seed]:
    nodes = {
        "/brokers/ids/0": ZooKeeperNode('{"host":"b","port":9092,"version":4}', TIME, TIME, 7),
        "/consumers/g/owners/orders/0": ZooKeeperNode("g_app-0", TIME, TIME, 9),
        "/consumers/g/offsets/orders/0": ZooKeeperNode("42", TIME, TIME, None),
        "/consumers/g/ids/g_app": ZooKeeperNode('{"version":1,"subscription":{"orders":1}}', TIME, TIME, 9),
    }
    packed = zookeeper_dumps.pack(zookeeper_dumps.Dump(nodes), hosts="zk", begun=TIME, ended=TIME)
    yield Seed("evidence", "zookeeper.json.gz", packed)
    yield Seed("evidence", "zookeeper.json", gzip.decompress(packed))
    yield Seed("evidence", "zk.txt", _ZKCLI.encode())
    listed = [{"path": path, "data": node.data, "mtime": node.modified} for path, node in nodes.items()]
    yield Seed("evidence", "tree.json", json.dumps(listed).encode())


def _own_files() -> Iterator[Seed]:
    place = TopicPartition("orders", 0)
    offsets = OffsetsChange({place: StoredOffset(4, -1, "")}, {place: StoredOffset(9, 2, "x")})
    replicas = ReplicasChange({0: (1, 2)}, {0: (2, 3)})
    for change in (offsets, replicas):
        record = ChangeRecord("c-1", "b:9092", "reset", "billing", TIME, "Resets", change)
        document: dict[str, object] = {
            "format": change_records._FORMAT,
            "id": record.id,
            "cluster": "c-1",
            "bootstrap": "b:9092",
        }
        document |= {"command": "reset", "subject": "billing", "at": TIME, "what": "Resets", "undoes": ""}
        yield Seed("undo", "undo.json", json.dumps(document | {"change": change.as_data()}).encode())
    known = Acknowledgement("billing", "KLP101", "ERROR", TIME + 9, "me", "known", TIME)
    yield Seed("acknowledgements", "acknowledgements.json", written({"c-1": [known]}).encode())
    yield Seed("offsets", "offsets.csv", offsets_file.write({place: 4}, "billing").encode())
    properties = (
        "bootstrap.servers=b:9092,\\\n [::1]:9093\nsecurity.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="a" password="b";\nrequest.timeout.ms=5000\nclient.id=\\u0041\n'
    )
    yield Seed("properties", "client.properties", properties.encode())


def _archives() -> Iterator[Seed]:
    texts = {Path(seed.name).name: seed.content[:200] for seed in _texts()}
    small = dict(list(texts.items())[:2])
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in (*small.items(), ("deep/" * 30 + "é" * 60, b"x")):
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), TIME / 1000
            archive.addfile(info, io.BytesIO(content))
        for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo("d")
            info.type, info.linkname = kind, "../../etc/passwd"
            archive.addfile(info)
    tar = packed.getvalue().rstrip(b"\0") + bytes(1024)
    yield Seed("evidence", "case.tar", tar)
    yield Seed("evidence", "case.tar.gz", gzip.compress(tar, mtime=0))
    yield Seed("evidence", "case.tar.xz", lzma.compress(tar, preset=0))
    yield Seed("evidence", "case.tar.bz2", bz2.compress(tar, 1))
    yield Seed("evidence", "server.log.gz", gzip.compress(next(iter(small.values())), mtime=0))
    yield Seed("evidence", "server.log.zst", b"\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00")
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive_zip:
        for name, content in small.items():
            archive_zip.writestr(name, content)
        archive_zip.writestr("nested.tar.gz", gzip.compress(tar, mtime=0))
    yield Seed("evidence", "case.zip", zipped.getvalue())
