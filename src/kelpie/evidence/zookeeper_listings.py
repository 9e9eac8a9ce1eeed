"""Listings of ZooKeeper's tree as plain text: a line for each node, and behind it what its stat says.

    # tree below /consumers/billing, taken 2026-11-15 22:11:40.837 UTC
    /consumers/billing/ids/billing_app-1 = {"version":1,"subscription":{"orders":1},…}
        ephemeralOwner=0x1a1e143d7d80007 ctime=2026-11-15 22:11:30.571 mtime=2026-11-15 22:11:30.571

A value that is None, null or missing is none. A comment ends the listing, unless nothing was listed so far;
the time in the first comment is when the listing was made. Times are in UTC.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from kelpie.model.time import Instant, plausible
from kelpie.observations.zookeeper_tree import ZooKeeperNode

_NODE = re.compile(
    r"(?P<path>/(?:brokers|consumers|controller|admin|config|cluster)(?:/\S*)?) = ?(?P<value>.*)"
)
_STAT = re.compile(r"\s+(?:\w+=\S.*)?\bephemeralOwner=0x(?P<session>[0-9a-fA-F]{1,16})\b")
_TIME = re.compile(r"\b(?P<name>[cm]time)=(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?)")
_TAKEN = re.compile(r"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?) ?(?:UTC|Z)")
_NONE = ("", "None", "null")


def looks_like_listing(lines: Iterable[str]) -> bool:
    """Whether lines that begin a file have a node, and its stat right behind it."""
    previous = ""
    for line in lines:
        if _STAT.match(line) and _NODE.fullmatch(previous):
            return True
        previous = line
    return False


def read_listing(lines: Iterable[str]) -> tuple[dict[str, ZooKeeperNode], Instant | None]:
    """The nodes by path, and when they were listed, if the text says so."""
    nodes: dict[str, ZooKeeperNode] = {}
    at: Instant | None = None
    path = ""
    for line in lines:
        if line.startswith("#"):
            if nodes:
                break
            taken = _TAKEN.search(line)
            at = _instant(taken["time"]) if taken is not None else at
        elif node := _NODE.fullmatch(line):
            path, value = node["path"], node["value"].strip()
            nodes[path] = ZooKeeperNode(None if value in _NONE else value)
        elif path and (stat := _STAT.match(line)):
            times = {match["name"]: _instant(match["time"]) for match in _TIME.finditer(line)}
            nodes[path] = replace(
                nodes[path],
                session=int(stat["session"], 16),
                created=times.get("ctime"),
                modified=times.get("mtime"),
            )
    return nodes, at


def _instant(text: str) -> Instant | None:
    with suppress(ValueError):
        return plausible(round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000))
    return None
