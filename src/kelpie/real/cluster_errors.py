class RealError(Exception):
    """A real cluster could not do what was asked. The text says what happened and what to do next."""


class Unavailable(RealError):
    """Something that real clusters need is missing on this machine. The text is one line."""


class ClusterRefused(RealError):
    """Something was asked for that does not exist or cannot be."""


class NodeDied(RealError):
    """A server ended while it was waited for."""

    def __init__(self, message: str, *, port_taken: bool) -> None:
        super().__init__(message)
        self.port_taken = port_taken
