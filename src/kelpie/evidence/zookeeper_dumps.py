"""Dumps of what Kafka keeps in ZooKeeper: brokers, partitions, and the groups of consumers of 0.8.

Three forms are read:

- what `kelpie collect --zookeeper` writes: `{"format":"kelpie zookeeper",…,"nodes":{PATH:{"data":…},…}}`;
- other JSON with the same content: an object of paths, or a list of objects with `path` and `data` (`value`);
- sessions of `zkCli.sh`: `get` and `ls` behind its prompt, or behind `zkCli.sh` in a shell.

A broker is alive while its ephemeral node below /brokers/ids exists. /brokers/topics/T has the replicas,
…/partitions/P/state leader and ISR. Consumers of 0.8 have no coordinator: /consumers/G/ids has the members,
owners the partitions of each, offsets the committed offsets. Their groups are of kind "zookeeper". What is
below /client_group_id is KoP's mapping of clients to groups (mapping_dumps.py).
"""

import gzip
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kelpie.attribution.addresses import KOP_ROOT
from kelpie.evidence.mapping_dumps import StoredValue, mapping_rows
from kelpie.evidence.snapshot_files import beginning
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import BrokerView, Committed, GroupState, Member, Observations, PartitionView
from kelpie.observations.groups import ZOOKEEPER

FORMAT = "kelpie zookeeper"
VERSION = 1
ENDING = ".json.gz"
LARGEST = 1 << 28
_GZIP = b"\x1f\x8b"
_OWN = b'{"format":"' + FORMAT.encode()
_PATHS = re.compile(rb'\s*\{\s*"/(?:brokers|consumers|controller|admin|config|cluster|client_group_id)\b')
_LISTED = re.compile(rb'"path"\s*:\s*"/(?:brokers|consumers|client_group_id)/')
_PROMPT = re.compile(r"^\[zk: [^\]]*\]\s*(.*)$")
_SHELL = re.compile(r"\b(?:zkCli|zookeeper-shell)(?:\.sh|\.cmd|\.bat)?\s(?:.*\s)?((?:get|ls2?|stat)\s.*)$")
_ESCAPES = re.compile(r"\x1b(?:\[[?0-9;]*[A-Za-z]|[=>])")
_COMMAND = re.compile(r"^(get|ls2?|stat)\b(?:\s+-\w+)*\s+(/\S*)")
_STAT = re.compile(
    r"^(cZxid|ctime|mZxid|mtime|pZxid|cversion|dataVersion|aclVersion|ephemeralOwner|dataLength"
    r"|numChildren) = (.*)$"
)
_CHILDREN = re.compile(r"^\[(.*)\]$")
_NOISE = re.compile(
    r"^(?:WATCHER::|WatchedEvent |log4j:|Node does not exist|Connecting to |Welcome to|JLine )"
    r"|^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} "
)
_TIME = "%a %b %d %H:%M:%S %Y"
_UTC = ("UTC", "GMT", "Z")
_OWNER_THREAD = re.compile(r"-\d+$")


class NoDump(Exception):
    """The file is no dump of ZooKeeper, or a damaged one."""


@dataclass(frozen=True, slots=True)
class Node:
    """What is known of a node. `data` is None if it has none, or was not read."""

    data: str | None = None
    modified: Instant | None = None


@dataclass(slots=True)
class Dump:
    nodes: dict[str, Node] = field(default_factory=dict)
    at: Instant | None = None
    """When it was made, if it says so."""
    cluster: str = ""


def pack(dump: Dump, *, hosts: str, begun: Instant, ended: Instant) -> bytes:
    nodes = {
        path: {"data": node.data, "modified": node.modified} for path, node in sorted(dump.nodes.items())
    }
    document = {"format": FORMAT, "version": VERSION, "cluster": dump.cluster, "hosts": hosts}
    document |= {"begun": begun, "ended": ended, "nodes": nodes}
    return gzip.compress(json.dumps(document, separators=(",", ":")).encode("ascii"), 6, mtime=0)


def is_own(head: bytes) -> bool:
    """Whether `kelpie collect` wrote a file that begins like this."""
    return beginning(head).startswith(_OWN)


def is_dump(head: bytes) -> bool:
    """Whether a file that begins like this is a dump, in any of the forms."""
    begins = beginning(head)
    if begins.startswith(_OWN) or _PATHS.match(begins):
        return True
    if begins.lstrip()[:1] in (b"{", b"["):
        return _LISTED.search(begins) is not None
    lines = begins.decode("utf-8", "replace").splitlines()
    return any(map(_asked, lines))


def read_dump(path: Path) -> Dump:
    """Raises NoDump, OSError."""
    with path.open("rb") as file:
        data = file.read(LARGEST + 1)
    try:
        if data.startswith(_GZIP):
            data = zlib.decompressobj(wbits=31).decompress(data, LARGEST + 1)
    except zlib.error as error:
        raise NoDump(f"It is damaged: {error}.") from None
    if len(data) > LARGEST:
        raise NoDump(f"A dump of ZooKeeper of more than {LARGEST >> 20} MB is not read.")
    text = data.decode("utf-8", "replace")
    if text.lstrip()[:1] not in ("{", "["):
        return _session(text.splitlines())
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoDump(f"It is a dump of ZooKeeper that cannot be read, perhaps cut off: {error}.") from None
    return _document(document)


def observe(dump: Dump, source: str, at: Instant | None = None) -> Observations:
    """The rows of a dump. `at`: when it was made, if it does not say so itself."""
    at = dump.at if dump.at is not None else at
    observations = Observations()
    tree = _Tree(dump.nodes)
    observations.partitions = list(_partitions(tree, at, source))
    observations.brokers = list(_brokers(tree, observations.partitions, at, source))
    for group in tree.children("/consumers"):
        observations.known_groups[group] = source
        observations.committed += _offsets(tree, group, at, source)
        state = _state(tree, group, at, source)
        if state is not None:
            observations.states.append(state)
    if _has_all_mappings(dump.nodes):
        values = {path: StoredValue((node.data or "").encode()) for path, node in dump.nodes.items()}
        observations.add(mapping_rows(values, source, at, file=source))
    return observations


def _has_all_mappings(nodes: Mapping[str, Node]) -> bool:
    """Whether KoP's tree was listed and all its nodes were read: what a listing leaves out does not exist."""
    below = [path for path in nodes if path.startswith(f"{KOP_ROOT}/")]
    return KOP_ROOT in nodes and all(nodes[path].data is not None for path in below)


class _Tree:
    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._children: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for path in sorted(nodes):
            child = path
            while child and child != "/":
                parent, _, name = child.rpartition("/")
                if name in self._children[parent]:
                    break
                self._children[parent][name] = None
                child = parent

    def has(self, path: str) -> bool:
        return path in self._nodes or path in self._children

    def children(self, path: str) -> Sequence[str]:
        return tuple(self._children.get(path, ()))

    def data(self, path: str) -> str | None:
        node = self._nodes.get(path)
        return node.data if node is not None else None

    def json(self, path: str) -> dict[str, Any]:
        with suppress(ValueError, RecursionError):
            document = json.loads(self.data(path) or "{}")
            if isinstance(document, dict):
                return document
        return {}


def _brokers(
    tree: _Tree, partitions: Iterable[PartitionView], at: Instant | None, source: str
) -> Iterator[BrokerView]:
    if not tree.has("/brokers/ids"):
        return
    living = {int(node) for node in tree.children("/brokers/ids") if node.isdecimal()}
    for node in sorted(living):
        host, port = _address(tree.json(f"/brokers/ids/{node}"))
        rack = tree.json(f"/brokers/ids/{node}").get("rack")
        yield BrokerView(
            node, host, port, rack if isinstance(rack, str) else None, True, at=at, source=source
        )
    for node in sorted({node for view in partitions for node in view.replicas} - living):
        reason = "it has no node below /brokers/ids in ZooKeeper"
        yield BrokerView(node, alive=False, reason=reason, at=at, source=source)


def _address(registration: Mapping[str, Any]) -> tuple[str, int]:
    """Host and port. They are empty where there is TLS only; since 0.9 there are endpoints, too."""
    host, port = registration.get("host"), registration.get("port")
    if isinstance(host, str) and host and isinstance(port, int) and port > 0:
        return host, port
    for endpoint in registration.get("endpoints") or ():
        match = re.fullmatch(r"\w+://(.*):(\d{1,5})", str(endpoint))
        if match is not None:
            return match[1], int(match[2])
    return "", -1


def _partitions(tree: _Tree, at: Instant | None, source: str) -> Iterator[PartitionView]:
    for topic in tree.children("/brokers/topics"):
        assigned = tree.json(f"/brokers/topics/{topic}").get("partitions")
        replicas = {
            int(partition): _nodes(nodes)
            for partition, nodes in (assigned.items() if isinstance(assigned, dict) else ())
            if partition.isdecimal()
        }
        known = [child for child in tree.children(f"/brokers/topics/{topic}/partitions") if child.isdecimal()]
        for partition in sorted(replicas.keys() | set(map(int, known))):
            state = tree.json(f"/brokers/topics/{topic}/partitions/{partition}/state")
            leader, epoch = state.get("leader", -1), state.get("leader_epoch", -1)
            if not state and tree.has(f"/brokers/topics/{topic}/partitions/{partition}/state"):
                continue  # It exists, and its data was not read.
            in_sync = _nodes(state.get("isr"))
            yield PartitionView(
                topic,
                partition,
                leader if isinstance(leader, int) else -1,
                replicas.get(partition, in_sync),
                in_sync,
                leader_epoch=epoch if isinstance(epoch, int) else -1,
                at=at,
                source=source,
            )


def _nodes(value: object) -> tuple[int, ...]:
    return tuple(node for node in value if isinstance(node, int)) if isinstance(value, list) else ()


def _offsets(tree: _Tree, group: str, at: Instant | None, source: str) -> Iterator[Committed]:
    for topic in tree.children(f"/consumers/{group}/offsets"):
        for partition in tree.children(f"/consumers/{group}/offsets/{topic}"):
            data = (tree.data(f"/consumers/{group}/offsets/{topic}/{partition}") or "").strip()
            if partition.isdecimal() and re.fullmatch(r"-?\d{1,18}", data):
                yield Committed(group, topic, int(partition), int(data), at=at, source=source)


def _state(tree: _Tree, group: str, at: Instant | None, source: str) -> GroupState | None:
    """Members, and what each owns. None: they were not read."""
    base = f"/consumers/{group}"
    if not tree.has(f"{base}/ids"):
        return None
    owned: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for topic in tree.children(f"{base}/owners"):
        for partition in tree.children(f"{base}/owners/{topic}"):
            owner = tree.data(f"{base}/owners/{topic}/{partition}")
            if owner and partition.isdecimal():
                owned[_OWNER_THREAD.sub("", owner.strip())].append(TopicPartition(topic, int(partition)))
    members = []
    for member in tree.children(f"{base}/ids"):
        subscription = tree.json(f"{base}/ids/{member}").get("subscription")
        topics = tuple(sorted(subscription)) if isinstance(subscription, dict) else None
        assigned = tuple(sorted(owned[member])) if tree.has(f"{base}/owners") else None
        members.append(Member(member, member, subscribed=topics, assigned=assigned))
    word = "Stable" if members else "Empty"
    return GroupState(group, word, ZOOKEEPER, "consumer", members=tuple(members), at=at, source=source)


def _document(document: Any) -> Dump:
    dump = Dump()
    if isinstance(document, dict) and ("nodes" in document):
        if document.get("format") == FORMAT and document.get("version") != VERSION:
            raise NoDump(
                f"It has version {document.get('version')} of the format; this release reads {VERSION}."
            )
        ended = document.get("ended", document.get("taken"))
        dump.at = ended if isinstance(ended, int) else _taken(document.get("taken_utc"))
        dump.cluster = document["cluster"] if isinstance(document.get("cluster"), str) else ""
        document = document["nodes"]
    if isinstance(document, dict):
        pairs: Iterable[tuple[Any, Any]] = document.items()
    elif isinstance(document, list):
        pairs = ((row.get("path"), row) for row in document if isinstance(row, dict))
    else:
        pairs = ()
    for path, node in pairs:
        if isinstance(path, str) and path.startswith("/"):
            dump.nodes[path.rstrip("/") or "/"] = _node(node)
    if not dump.nodes:
        raise NoDump("It is JSON without any path of ZooKeeper's in it.")
    return dump


def _node(value: Any) -> Node:
    if not isinstance(value, dict):
        return Node(value if isinstance(value, str) else None)
    if "path" not in value and "data" not in value and "value" not in value:
        return Node(json.dumps(value))  # What the node holds, bare.
    data = value.get("data", value.get("value"))
    if isinstance(data, (dict, list)):
        data = json.dumps(data)
    modified = value.get("modified", value.get("mtime"))
    return Node(str(data) if data is not None else None, modified if isinstance(modified, int) else None)


def _taken(text: object) -> Instant | None:
    with suppress(ValueError):
        return round(datetime.fromisoformat(str(text)).replace(tzinfo=UTC).timestamp() * 1000)
    return None


def _session(lines: Iterable[str]) -> Dump:
    """Commands of zkCli.sh, each with what it printed."""
    dump = Dump()
    command, path = "", ""
    for raw in lines:
        asked = _asked(raw)
        if asked is not None:
            command, path = asked[1], asked[2].rstrip("/") or "/"
            continue
        line = _ESCAPES.sub("", raw).strip()
        if _PROMPT.match(line):
            command = ""
        if not command or not line or _NOISE.match(line):
            continue
        stat = _STAT.match(line)
        if stat is not None:
            _note_stat(dump, path, stat[1], stat[2])
        elif command in ("ls", "ls2"):
            children = _CHILDREN.match(line)
            if children is not None:
                dump.nodes.setdefault(path, Node())
                for name in filter(None, re.split(r",\s*", children[1])):
                    dump.nodes.setdefault(f"{path.rstrip('/')}/{name}", Node())
        elif command == "get" and dump.nodes.get(path, Node()).data is None:
            dump.nodes[path] = Node(None if line == "null" else line)
    if not dump.nodes:
        raise NoDump("It is a session of zkCli.sh without any answer in it.")
    return dump


def _asked(line: str) -> "re.Match[str] | None":
    """The command, if the line has one: behind zkCli's prompt, or behind its name in a shell."""
    plain = _ESCAPES.sub("", line).strip()
    match = _PROMPT.match(plain) or _SHELL.search(plain)
    return _COMMAND.match(match[1]) if match is not None else None


def _note_stat(dump: Dump, path: str, name: str, value: str) -> None:
    node = dump.nodes.setdefault(path, Node())
    if name != "mtime":
        return
    # "Mon Nov 16 05:10:40 UTC 2026"; other zones appear by name only, which is ambiguous.
    words = value.split()
    if len(words) == 6 and words[4] in _UTC:
        with suppress(ValueError):
            moment = datetime.strptime(" ".join([*words[:4], words[5]]), _TIME).replace(tzinfo=UTC)
            dump.nodes[path] = Node(node.data, round(moment.timestamp() * 1000))
