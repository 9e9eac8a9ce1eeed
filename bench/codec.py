"""Encode and decode of the four messages that groups live by, against kafka-python and kio.

All three write the same bytes first; otherwise there is nothing to compare. kio decodes in Rust and encodes
in Python; kafka-python and Kelpie are Python throughout.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.wire.oracles import REQUEST, RESPONSE, KafkaPython, Kio

from bench.measure import Ratio, Report, cpu_seconds
from kelpie.wire.api import join_group, metadata, offset_commit, offset_fetch
from kelpie.wire.apis import api
from kelpie.wire.compiler import decode, encode


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    key: int
    kind: str
    version: int
    message: Any


def samples() -> list[Sample]:
    return [
        Sample("offset-fetch-response-1000", 9, RESPONSE, 8, offset_fetch_response(1000)),
        Sample("offset-commit-request-1000", 8, REQUEST, 8, offset_commit_request(1000)),
        Sample("metadata-response-1000", 3, RESPONSE, 12, metadata_response(1000)),
        Sample("join-group-response-100", 11, RESPONSE, 9, join_group_response(100)),
    ]


def offset_fetch_response(partitions: int) -> Any:
    topics = [
        offset_fetch.OffsetFetchResponseTopics(
            name=f"orders-{topic}",
            partitions=[
                offset_fetch.OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=10_000 * index,
                    committed_leader_epoch=3,
                    metadata="",
                    error_code=0,
                )
                for index in range(partitions // 10)
            ],
        )
        for topic in range(10)
    ]
    return offset_fetch.OffsetFetchResponse(
        groups=[offset_fetch.OffsetFetchResponseGroup(group_id="billing", topics=topics)]
    )


def offset_commit_request(partitions: int) -> Any:
    return offset_commit.OffsetCommitRequest(
        group_id="billing",
        generation_id_or_member_epoch=7,
        member_id="consumer-billing-1-4f2c9a4e-0f63-4d0e-9c53-6f1f2ad3c1b0",
        topics=[
            offset_commit.OffsetCommitRequestTopic(
                name=f"orders-{topic}",
                partitions=[
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=10_000 * index,
                        committed_leader_epoch=3,
                        committed_metadata="",
                    )
                    for index in range(partitions // 10)
                ],
            )
            for topic in range(10)
        ],
    )


def metadata_response(partitions: int) -> Any:
    return metadata.MetadataResponse(
        brokers=[
            metadata.MetadataResponseBroker(node_id=node, host=f"broker-{node}.example", port=9092, rack="a")
            for node in range(3)
        ],
        cluster_id="Nn1lSmDrQ6uN9a0fW2Cs1Q",
        controller_id=1,
        topics=[
            metadata.MetadataResponseTopic(
                error_code=0,
                name=f"orders-{topic}",
                topic_id=bytes([topic + 1] * 16),
                is_internal=False,
                partitions=[
                    metadata.MetadataResponsePartition(
                        error_code=0,
                        partition_index=index,
                        leader_id=index % 3,
                        leader_epoch=5,
                        replica_nodes=[0, 1, 2],
                        isr_nodes=[0, 1, 2],
                        offline_replicas=[],
                    )
                    for index in range(partitions // 10)
                ],
            )
            for topic in range(10)
        ],
    )


def join_group_response(members: int) -> Any:
    subscription = bytes.fromhex("0001000000010006") + b"orders" + bytes.fromhex("ffffffff00000000")
    return join_group.JoinGroupResponse(
        error_code=0,
        generation_id=7,
        protocol_type="consumer",
        protocol_name="range",
        leader="consumer-billing-0-4f2c9a4e-0f63-4d0e-9c53-6f1f2ad3c1b0",
        member_id="consumer-billing-0-4f2c9a4e-0f63-4d0e-9c53-6f1f2ad3c1b0",
        members=[
            join_group.JoinGroupResponseMember(
                member_id=f"consumer-billing-{index}-4f2c9a4e-0f63-4d0e-9c53-6f1f2ad3c1b0",
                group_instance_id=None,
                metadata=subscription,
            )
            for index in range(members)
        ],
    )


def run() -> Report:
    oracles: list[KafkaPython | Kio] = [KafkaPython(), Kio()]
    rows: list[list[str]] = []
    ratios: list[Ratio] = []
    for sample in samples():
        cls = getattr(api(sample.key), sample.kind)
        body = encode(sample.message, sample.version)
        encoders: dict[str, Callable[[], object]] = {"kelpie": _encode(sample)}
        decoders: dict[str, Callable[[], object]] = {"kelpie": _decode(cls, sample.version, body)}
        for oracle in oracles:
            theirs = oracle.decode(sample.key, sample.kind, sample.version, body)
            if oracle.encode(sample.key, sample.kind, sample.version, theirs) != body:
                raise AssertionError(f"{oracle.name} writes {sample.name} differently")
            encoders[oracle.name] = oracle.encoder(sample.key, sample.kind, sample.version, theirs)
            decoders[oracle.name] = oracle.decoder(sample.key, sample.kind, sample.version, body)
        for action, contenders in (("encode", encoders), ("decode", decoders)):
            seconds = cpu_seconds(contenders)
            rows.append([sample.name, action, *(f"{seconds[name] * 1e6:.0f}" for name in contenders)])
            ratios += [
                Ratio(f"codec-{action}-{sample.name}", seconds[oracle.name] / seconds["kelpie"], oracle.name)
                for oracle in oracles
            ]
    return Report(
        title="Codec",
        about="CPU time in microseconds, least of 15 turns; all three write the same bytes.",
        header=["message", "", "Kelpie", *(oracle.name for oracle in oracles)],
        rows=rows,
        ratios=ratios,
    )


def _encode(sample: Sample) -> Callable[[], object]:
    message, version = sample.message, sample.version
    return lambda: encode(message, version)


def _decode(cls: type[Any], version: int, body: bytes) -> Callable[[], object]:
    return lambda: decode(cls, version, body)
