r"""Dumps of KoP's mapping tree in ZooKeeper: which client belongs to which group.

A text with one node a line, in one or more listings. A comment begins the next listing; a time in it is when
that listing was made:

    # 2026-11-17T01:30:00Z before the restart
    /client_group_id\tvalue=b''\tversion=0\tephemeralOwner=0x0
    /client_group_id/10.0.0.7-app-1\tvalue=b'billing'\tversion=2\tephemeralOwner=0x0
    # after the restart
    /client_group_id does not exist

Values are written as Python writes bytes. Other dumps of ZooKeeper (zookeeper_dumps.py) can hold the tree,
too.
"""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from kelpie.evidence.dating import name_order
from kelpie.model.time import Instant, plausible, utc
from kelpie.observations import Observations
from kelpie.observations.mapping_tree import StoredValue, mapping_rows

_ESCAPE = r"\\(?:[\\'\"tnr]|x[0-9a-fA-F]{2})"
_NODE = re.compile(  # The value as Python writes bytes, so that it can be read as such.
    rf"(?P<path>/[^\t]*)\tvalue=(?P<value>b'(?:[ -&(-\[\]-~]|{_ESCAPE})*'|b\"(?:[ !#-\[\]-~]|{_ESCAPE})*\")"
    r"(?:\tversion=(?P<version>\d{1,9}))?(?:\t.*)?"
)
_ABSENT = re.compile(r"(?P<path>/[^\t ]+) does not exist")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:?\d\d)(?!\d)")


@dataclass(slots=True)
class _Listing:
    line: int
    at: Instant | None = None
    root: str | None = None
    exists: bool = True
    nodes: dict[str, StoredValue] = field(default_factory=dict)


def write_listing(nodes: Mapping[str, StoredValue] | None, root: str, at: Instant | None = None) -> str:
    """One listing as such a text. None: there is no such root."""
    lines = [] if at is None else [f"# {utc(at).isoformat(timespec='milliseconds')}"]
    if nodes is None:
        lines.append(f"{root} does not exist")
    else:
        lines.append(f"{root}\tvalue=b''")
        for path, (data, version, _) in sorted(nodes.items()):
            lines.append(f"{path}\tvalue={data!r}\tversion={version}")
    return "\n".join(lines) + "\n"


def looks_like_mappings(lines: Sequence[str]) -> bool:
    """Whether lines that begin a file are those of such a dump, and nothing else."""
    content = [line for line in lines if line.strip() and not line.startswith("#")]
    return bool(content) and all(_NODE.fullmatch(line) or _ABSENT.fullmatch(line) for line in content)


def read_mappings(lines: Iterable[str], name: str) -> Observations:
    """The rows of all listings of a file, in their order."""
    listings: list[_Listing] = []
    was_comment, at = True, None
    for number, line in enumerate(lines, start=1):
        if line.startswith("#"):
            at = _time_in(line) if at is None or not was_comment else at
            was_comment = True
            continue
        node, absent = _NODE.fullmatch(line), _ABSENT.fullmatch(line)
        if node is None and absent is None:
            continue
        if was_comment or not listings:
            listings.append(_Listing(number, at))
            was_comment = False
        if absent is not None:
            listings[-1].root, listings[-1].exists = absent["path"], False
        elif node is not None:
            value = StoredValue(ast.literal_eval(node["value"]), int(node["version"] or -1), number)
            listings[-1].nodes[node["path"]] = value
    rows = Observations()
    for listing in listings:
        root = listing.root or min(listing.nodes, key=len)
        source = f"{name}:{listing.line}"
        rows.add(mapping_rows(listing.nodes, source, listing.at, root=root, exists=listing.exists, file=name))
    return rows


def _time_in(comment: str) -> Instant | None:
    match = _TIME.search(comment)
    if match is not None:
        with suppress(ValueError):
            return plausible(round(datetime.fromisoformat(match[0]).timestamp() * 1000))
    return None


def settle_mappings(dumps: Iterable[tuple[Observations, Instant | None]]) -> Observations:
    """The rows of several dumps in the order of their files' names.

    Each comes with the time of its file, or None if file times do not tell. It is that of the last listing,
    unless that has a time of its own.
    """
    settled = Observations()
    for rows, at in sorted(dumps, key=lambda dump: name_order(dump[0].mapping_listings[0].source)):
        last = rows.mapping_listings[-1]
        if last.at is None:
            rows.mapping_listings[-1] = last._replace(at=at)
            rows.mappings = [
                row._replace(at=at) if row.listing == last.source else row for row in rows.mappings
            ]
        settled.add(rows)
    return settled
