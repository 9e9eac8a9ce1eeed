"""A real terminal of any width, on which commands run in this process."""

import fcntl
import os
import pty
import re
import struct
import sys
import termios
import threading
from collections.abc import Sequence
from contextlib import suppress

import pytest

from kelpie.cli import main

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Screen:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
        self._monkeypatch = monkeypatch
        self.columns = columns

    def run(self, words: Sequence[str]) -> list[str]:
        """The lines that stay on the screen, without colours."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, self.columns, 0, 0))
        written: list[bytes] = []
        reader = threading.Thread(target=_read, args=(ours, written), daemon=True)
        reader.start()
        with os.fdopen(theirs, "w", encoding="utf-8") as terminal, self._monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", terminal)
            patched.setattr(sys, "stderr", terminal)
            with suppress(SystemExit):  # --help
                main(list(words))
        reader.join(60)
        os.close(ours)
        text = b"".join(written).decode()
        return [_visible(line) for line in text.replace("\r\n", "\n").split("\n")]


def _read(terminal: int, written: list[bytes]) -> None:
    with suppress(OSError):  # The other side is closed.
        while part := os.read(terminal, 65_536):
            written.append(part)


def _visible(line: str) -> str:
    """What is left of a line that was rewritten."""
    return _ESCAPES.sub("", line.rpartition("\r")[2]).rstrip()
