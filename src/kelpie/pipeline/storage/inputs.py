"""What tables are made of, as a number: the log of a table keeps it, and tells whether it is to be made anew.

A table that follows from others is made of their files: no file of a table ever changes, and each has a name
of its own. The number is kept in the same commit that replaces the rows, so whoever is killed between two
tables finds the first as it should be, and the second not.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import kelpie
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES


def number_of(lake: Lake, cluster: str, inputs: Sequence[str]) -> int:
    """Of a cluster's rows in these tables as they are now, and of the code that makes something of them."""
    told = hashlib.sha256(_code())
    for name in inputs:
        told.update(b"\0\0" + name.encode())
        for path in sorted(lake.files(TABLES[name], cluster)):
            told.update(b"\0" + path.name.encode())
    return int.from_bytes(told.digest()[:8], "big") >> 1


@cache
def _code() -> bytes:
    """Another release makes other tables of the same."""
    told = hashlib.sha256()
    for package in map(Path, kelpie.__path__):
        for path in sorted(package.rglob("*.py")):
            told.update(path.read_bytes())
    return told.digest()
