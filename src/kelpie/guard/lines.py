"""Lines of a stream that is read piece by piece: any bytes, lines of any length."""

from kelpie.evidence.logs.lines import LARGEST_LINE


class LineCutter:
    """Cuts what it is fed into lines. Of a line that is too long, only the beginning is kept."""

    def __init__(self, largest: int = LARGEST_LINE) -> None:
        self._largest = largest
        self._rest = b""
        """The beginning of a line whose end has not come yet."""
        self._passing_over = False

    def feed(self, data: bytes) -> list[str]:
        """The lines that end in this data."""
        *whole, rest = data.split(b"\n")
        lines = []
        for part in whole:
            if not self._passing_over:
                lines.append(_text(self._rest + part, self._largest))
            self._rest, self._passing_over = b"", False
        if not self._passing_over:
            self._rest += rest
            if len(self._rest) > self._largest:
                lines.append(_text(self._rest, self._largest))
                self._rest, self._passing_over = b"", True
        return lines

    def end(self) -> list[str]:
        """The last line, if no line break follows it."""
        lines = [_text(self._rest, self._largest)] if self._rest else []
        self._rest, self._passing_over = b"", False
        return lines


def _text(line: bytes, largest: int) -> str:
    return line[:largest].decode("utf-8", "replace").rstrip("\r")
