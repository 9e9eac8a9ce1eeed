"""A number for the input rows of a derived table: if the table's log has another one, the table is due.

Files of a table never change, and each has a unique name, so their names stand for the rows. The number is
kept in the commit that replaces the rows of the derived table, as a transaction id of Delta: rows and number
cannot differ, also if a run is killed between two tables.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import kelpie
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES


def number_of(lake: Lake, cluster: str, inputs: Sequence[str]) -> int:
    """The number of a cluster's rows in these tables now. Other code has other numbers."""
    digest = hashlib.sha256(_code())
    for name in inputs:
        digest.update(b"\0\0" + name.encode())
        for path in sorted(lake.files(TABLES[name], cluster)):
            digest.update(b"\0" + path.name.encode())
    return int.from_bytes(digest.digest()[:8], "big") >> 1


@cache
def _code() -> bytes:
    """Another release may make other rows of the same inputs."""
    digest = hashlib.sha256()
    for package in map(Path, kelpie.__path__):
        for path in sorted(package.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.digest()
