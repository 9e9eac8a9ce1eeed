"""Names of clusters, as tables have them: also names of folders there, in every reader's dialect."""

import re

_OTHER = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST = 200


def plain(name: str) -> str:
    """Letters, digits, dots and dashes, as in ids of clusters; whatever else stands in a name becomes `_`."""
    return _OTHER.sub("_", name)[:_LONGEST] or "_"
