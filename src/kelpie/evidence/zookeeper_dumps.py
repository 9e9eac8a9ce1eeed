"""Dumps of what Kafka keeps in ZooKeeper: brokers, partitions, and the groups of consumers of 0.8.

Four forms are read:

- what `kelpie collect --zookeeper` writes: `{"format":"kelpie zookeeper",…,"nodes":{PATH:{"data":…},…}}`;
- other JSON with the same content: an object of paths, or a list of objects with `path` and `data` (`value`);
- sessions of `zkCli.sh`: `get` and `ls` behind its prompt, or behind `zkCli.sh` in a shell;
- plain listings of nodes (zookeeper_listings.py).

`observations.zookeeper_tree` says what the nodes mean.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from kelpie.evidence.snapshot_files import beginning
from kelpie.evidence.zookeeper_listings import looks_like_listing, read_listing
from kelpie.model.time import Instant, plausible
from kelpie.observations import Observations
from kelpie.observations.zookeeper_tree import ZooKeeperNode, observe_nodes
from kelpie.places import Place

FORMAT = "kelpie zookeeper"
VERSION = 1
ENDING = ".json.gz"
LARGEST = 1 << 28
MOST_VALUES = 5_000_000
MOST_NODES = 1_500_000
"""A node of a few characters costs some hundred bytes of memory, so values are counted first."""
_LOOKED_AT = 400
"""Lines: the beginning of a text shows what it is."""
_GZIP = b"\x1f\x8b"
_OWN = b'{"format":"' + FORMAT.encode()
_PATHS = re.compile(rb'\s*\{\s*"/(?:brokers|consumers|controller|admin|config|cluster|client_group_id)\b')
_LISTED = re.compile(rb'"path"\s*:\s*"/(?:brokers|consumers|client_group_id)/')
_PROMPT = re.compile(r"^\[zk: [^\]]*\]\s*(.*)$")
_SHELL = re.compile(r"\b(?:zkCli|zookeeper-shell)(?:\.sh|\.cmd|\.bat)?(?=\s)")
_IN_SHELL = re.compile(r"(?<=\s)(?:get|ls2?|stat)\s")
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


class NoDump(Exception):
    """The file is no dump of ZooKeeper, or a damaged one."""


@dataclass(slots=True)
class Dump:
    nodes: dict[str, ZooKeeperNode] = field(default_factory=dict)
    at: Instant | None = None
    """When it was made, if it says so."""
    cluster: str = ""
    complete: bool = False
    """Nothing that Kafka keeps is missing: `kelpie collect` wrote it."""


def pack(dump: Dump, *, hosts: str, begun: Instant, ended: Instant) -> bytes:
    nodes = {
        path: {
            "data": node.data,
            "modified": node.modified,
            "created": node.created,
            "session": node.session,
        }
        for path, node in sorted(dump.nodes.items())
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
    return looks_like_listing(lines) or any(map(_asked, lines))


def read_dump(path: Place) -> Dump:
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
    if sum(map(data.count, (b",", b"[", b"{", b"\n"))) > MOST_VALUES:
        raise NoDump(f"A dump of ZooKeeper with more than {MOST_VALUES:,} values is not read.")
    text = data.decode("utf-8", "replace")
    if text.lstrip()[:1] not in ("{", "["):
        lines = text.splitlines()
        return Dump(*read_listing(lines)) if looks_like_listing(lines[:_LOOKED_AT]) else _session(lines)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoDump(f"It is a dump of ZooKeeper that cannot be read, perhaps cut off: {error}.") from None
    return _document(document)


def observe(dump: Dump, source: str, at: Instant | None = None) -> Observations:
    """The rows of a dump. `at`: when it was made, if it does not say so itself."""
    return observe_nodes(dump.nodes, source, dump.at if dump.at is not None else at, complete=dump.complete)


def _document(document: Any) -> Dump:
    dump = Dump()
    if isinstance(document, dict) and ("nodes" in document):
        if document.get("format") == FORMAT and document.get("version") != VERSION:
            raise NoDump(
                f"It has version {document.get('version')} of the format; this release reads {VERSION}."
            )
        dump.complete = document.get("format") == FORMAT
        ended = document.get("ended", document.get("taken"))
        dump.at = _instant(ended) if isinstance(ended, int) else _taken(document.get("taken_utc"))
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
            if len(dump.nodes) > MOST_NODES:
                raise NoDump(f"A dump of ZooKeeper with more than {MOST_NODES:,} nodes is not read.")
    if not dump.nodes:
        raise NoDump("It is JSON without any path of ZooKeeper's in it.")
    return dump


def _node(value: Any) -> ZooKeeperNode:
    if not isinstance(value, dict):
        return ZooKeeperNode(value if isinstance(value, str) else None)
    if "path" not in value and "data" not in value and "value" not in value:
        return ZooKeeperNode(json.dumps(value))  # What the node holds, bare.
    data = value.get("data", value.get("value"))
    if isinstance(data, (dict, list)):
        data = json.dumps(data)
    modified = value.get("modified", value.get("mtime"))
    created = value.get("created", value.get("ctime"))
    return ZooKeeperNode(
        str(data) if data is not None else None,
        _instant(modified),
        _instant(created),
        _session_id(value.get("session", value.get("ephemeralOwner"))),
    )


def _session_id(value: object) -> int | None:
    """A number, or as ZooKeeper's own tools write it: "0x1a1e143d7d80007"."""
    if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,16}", value):
        return int(value, 16)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _instant(value: object) -> Instant | None:
    return plausible(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _taken(text: object) -> Instant | None:
    with suppress(ValueError):
        return plausible(round(datetime.fromisoformat(str(text)).replace(tzinfo=UTC).timestamp() * 1000))
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
                dump.nodes.setdefault(path, ZooKeeperNode())
                for name in filter(None, re.split(r",\s*", children[1])):
                    dump.nodes.setdefault(f"{path.rstrip('/')}/{name}", ZooKeeperNode())
        elif command == "get" and dump.nodes.get(path, ZooKeeperNode()).data is None:
            known = dump.nodes.get(path, ZooKeeperNode())
            dump.nodes[path] = replace(known, data=None if line == "null" else line)
    if not dump.nodes:
        raise NoDump("It is a session of zkCli.sh without any answer in it.")
    return dump


def _asked(line: str) -> "re.Match[str] | None":
    """The command, if the line has one: behind zkCli's prompt, or behind its name in a shell."""
    plain = _ESCAPES.sub("", line).strip()
    prompt = _PROMPT.match(plain)
    if prompt is not None:
        return _COMMAND.match(prompt[1])
    shell = _SHELL.search(plain)
    commands = list(_IN_SHELL.finditer(plain, shell.end())) if shell is not None else []
    return _COMMAND.match(plain[commands[-1].start() :]) if commands else None


def _note_stat(dump: Dump, path: str, name: str, value: str) -> None:
    node = dump.nodes.setdefault(path, ZooKeeperNode())
    if name == "ephemeralOwner":
        dump.nodes[path] = replace(node, session=_session_id(value.strip()))
    elif name == "mtime":
        dump.nodes[path] = replace(node, modified=_time(value))
    elif name == "ctime":
        dump.nodes[path] = replace(node, created=_time(value))


def _time(text: str) -> Instant | None:
    """Of "Mon Nov 16 05:10:40 UTC 2026"; other zones appear by name only, which is ambiguous."""
    words = text.split()
    if len(words) == 6 and words[4] in _UTC:
        with suppress(ValueError):
            moment = datetime.strptime(" ".join([*words[:4], words[5]]), _TIME).replace(tzinfo=UTC)
            return plausible(round(moment.timestamp() * 1000))
    return None
