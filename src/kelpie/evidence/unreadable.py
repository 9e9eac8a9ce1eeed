"""The reason given for a file that cannot be read."""

UNREADABLE = "It cannot be read"
"""How the reason begins."""


def unreadable(error: OSError) -> str:
    return f"{UNREADABLE}: {why(error)}."


def why(error: OSError) -> str:
    """As a part of a sentence."""
    return (error.strerror or str(error)).lower()
