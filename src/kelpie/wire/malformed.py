class Malformed(ValueError):
    """Bytes that are not what they should be: why, at which byte, and in which field."""

    def __init__(self, reason: str, *, offset: int, path: str = "") -> None:
        where = f"{path}, byte {offset}" if path else f"byte {offset}"
        super().__init__(f"{reason} (at {where})")
        self.reason = reason
        self.offset = offset
        self.path = path


class TooLarge(Malformed):
    """Compressed bytes that inflate to more than was allowed. They may be right."""


class Unencodable(ValueError):
    """A message that cannot be written in the version asked for: a defect of the caller that built it."""
