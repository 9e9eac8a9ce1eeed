"""Numbers in texts that somebody else wrote."""

_LARGEST = 2**63 - 1
_DIGITS = 19


def whole_number(text: str) -> int | None:
    """The number, if the text is one that Kafka could have written: digits alone, and no more than 64 bits.

    Python's isdigit also accepts "²", which int refuses; int also refuses numbers of thousands of digits.
    """
    if len(text) > _DIGITS or not text.isascii() or not text.isdigit():
        return None
    number = int(text)
    return number if number <= _LARGEST else None
