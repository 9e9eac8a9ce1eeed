"""What one client, and all clients together, may take of the server."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    connections: int = 256
    """Far below the files that a process may have open: looks at clusters need connections, too."""
    handshake_s: float = 10.0
    """For TLS, from the connection on."""
    farewell_s: float = 60.0
    """For TLS, from the end of the last answer until the client has read it and said so."""
    head_s: float = 20.0
    """From the connection, or from the answer before, until all headers have come."""
    body_s: float = 40.0
    """From the headers to the end of the request. Forms are refused sooner, with a page that says so."""
    head_bytes: int = 16 * 1024
    reading_s: float = 30.0
    """A client that reads an answer has to read some of it each time this has passed. The system tells that
    a third of `buffer_bytes` was read, and no less: the slowest line that is waited for has 25 kbit/s."""
    buffer_bytes: int = 256 * 1024
    """That the system keeps of an answer, for each connection; it would keep megabytes."""
    unread_bytes: int = 256 * 1024 * 1024
    """Of all answers together. Then the client with the largest rest is dropped."""
    ending_s: int = 10
    """From Ctrl-C until answers that are not done are cut off."""
