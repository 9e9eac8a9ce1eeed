"""Lines of a file, one after another, however long the file or a line of it is."""

import io
from collections.abc import Iterator
from typing import Literal, Protocol


class Readable(Protocol):
    """A path of this machine, or of a file system that a URL names."""

    def open(self, mode: Literal["rb"], /) -> io.BufferedReader: ...


LARGEST_LINE = 1 << 18
_ODD = bytes((*range(9), *range(14, 27), *range(28, 32)))
"""What no text has: control characters but tabs, ends of lines and pages, and escapes of colours."""
_BOMS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


def encoding_of(head: bytes) -> str:
    """PowerShell writes UTF-16; everything else is UTF-8, or near enough to be read."""
    for bom, encoding in _BOMS.items():
        if head.startswith(bom):
            return encoding
    return "utf-8"


def is_text(head: bytes) -> bool:
    """Whether this is how a text begins."""
    if encoding_of(head) != "utf-8":
        return True
    if b"\x00" in head:
        return False
    looked_at = head[:4096]
    odd = len(looked_at) - len(looked_at.translate(None, delete=_ODD))
    return odd * 20 <= len(looked_at)


def read_lines(path: Readable, encoding: str) -> Iterator[str]:
    """Without their ends. A line longer than anything sensible is cut, and the rest of it passed over."""
    with path.open("rb") as file:
        text = io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="\n")
        while line := text.readline(LARGEST_LINE):
            if len(line) == LARGEST_LINE and not line.endswith("\n"):
                while (rest := text.readline(LARGEST_LINE)) and not rest.endswith("\n"):
                    pass
            yield line.rstrip("\r\n")
