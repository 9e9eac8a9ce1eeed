"""Names of clusters in tables. They are also names of folders, which every reader must accept."""

import re

_OTHER = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST = 200


def plain(name: str) -> str:
    """Letters, digits, dots and dashes stay, as in ids of clusters; other characters become `_`."""
    return _OTHER.sub("_", name)[:_LONGEST] or "_"
