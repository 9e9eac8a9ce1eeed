"""Parts of a document for JSON that stand in it many times, as the same object.

A report on thousands of groups that one dead broker hits has the same evidence and remedies for each of them.
Whoever writes it (`cli.json_output`) writes such a part once, and then repeats the text.
"""

from typing import Any


class Repeated(dict[str, Any]):
    """A part. It does not change any more."""

    __slots__ = ()
