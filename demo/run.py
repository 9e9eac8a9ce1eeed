"""The demo: what there is to show so far, from recordings of real Kafka. Needs no cluster and no network."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kelpie.errors import describe
from kelpie.model.partitioning import partition_for
from kelpie.wire import offsets_topic
from kelpie.wire.apis import api
from kelpie.wire.framing import decode_request, decode_response
from kelpie.wire.offsets_topic.offset_commit import OffsetCommitKey
from kelpie.wire.records import read_all_records

sys.path.insert(
    0, str(Path(__file__).resolve().parent.parent)
)  # the recordings and their reader live with the tests

from tests.evidence import unpacked
from tests.recording import conversation, java_tools
from tests.recording.proxy import REQUEST

DEAD = ("broker-1", "broker-2")
STEPS = {
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "OffsetFetch",
    "ListOffsets",
    "OffsetCommit",
    "LeaveGroup",
}


def main() -> int:
    print("1. How a consumer finds its place\n")
    print("   A Java 4.3.1 console consumer joined group 'classic' on a real broker;")
    print("   Kelpie's codec reads the frames that they exchanged:\n")
    for line in journey("--group classic --from-beginning"):
        print(f"   {line}")
    outage(unpacked("kafka-0.9.0.1-coordinator-outage"))
    print("\nWhat comes next is in ROADMAP.md.")
    return 0


def outage(evidence: Path) -> None:
    print("\n2. Kafka 0.9.0.1 with two of three brokers dead\n")
    print("   What each consumer heard when it asked for its coordinator, the partition")
    print("   of __consumer_offsets that its name hashes to, and what the disks of the")
    print("   dead brokers still know of it:\n")
    commits = last_commits(evidence)
    for log in sorted((evidence / "logs").glob("client-*.during.log")):
        group = log.name.removeprefix("client-").removesuffix(".during.log")
        heard = re.findall(r"body=\{group_id=.*?responseBody=\{error_code=(\d+)", log.read_text())
        print(f"   {group}, partition {partition_for(group, 50)}: {describe(int(heard[-1]))}")
        found = sorted(commits.get(group, {}).items())
        for at in range(0, len(found), 3):
            print(
                "      " + "   ".join(f"{t}-{p} committed {offset}" for (t, p), offset in found[at : at + 3])
            )


def journey(scene: str) -> Iterator[str]:
    """The requests of one run of the console consumer that concern its group, each with its answer."""
    waiting: dict[tuple[int, int], tuple[int, int, Any]] = {}
    for it in conversation.load(java_tools.FILE):
        if scene not in it.scene:
            continue
        if it.direction == REQUEST:
            header, message = decode_request(it.frame)
            waiting[it.connection, header.correlation_id] = (header.api_key, header.api_version, message)
            continue
        key, version, asked = waiting.pop((it.connection, int.from_bytes(it.frame[:4])))
        name = api(key).name
        if name in STEPS:
            _, answer = decode_response(key, version, it.frame)
            yield f"{f'{name} v{version}':<20}{told(name, asked, answer)}"


def told(name: str, asked: Any, answer: Any) -> str:
    match name:
        case "FindCoordinator":
            found = answer.coordinators[0]
            return f"{describe(found.error_code)}, node {found.node_id}"
        case "JoinGroup":
            return f"{describe(answer.error_code)}, generation {answer.generation_id}"
        case "OffsetFetch":
            return offsets((p.partition_index, p.committed_offset) for p in parts(answer.groups[0]))
        case "ListOffsets":
            return offsets((p.partition_index, p.offset) for p in parts(answer))
        case "OffsetCommit":
            return offsets((p.partition_index, p.committed_offset) for p in parts(asked))
        case _:
            return describe(answer.error_code)


def parts(message: Any) -> list[Any]:
    return [partition for topic in message.topics for partition in topic.partitions]


def offsets(pairs: Iterator[tuple[int, int]]) -> str:
    return ", ".join(f"partition {index}: {offset}" for index, offset in pairs)


def last_commits(evidence: Path) -> dict[str, dict[tuple[str, int], int]]:
    """What the offsets topic on the dead brokers' disks says each group had committed."""
    last: dict[str, dict[tuple[str, int], int]] = {}
    for broker in DEAD:
        for segment in sorted((evidence / "segments" / broker).glob("__consumer_offsets-*/*.log")):
            for record in read_all_records(segment.read_bytes()):
                record_type, key = offsets_topic.decode_key(record.key)
                value = offsets_topic.decode_value(record_type, record.value)
                if isinstance(key, OffsetCommitKey) and value is not None:
                    last.setdefault(key.group, {})[key.topic, key.partition] = value.offset
    return last


if __name__ == "__main__":
    raise SystemExit(main())
