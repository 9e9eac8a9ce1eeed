"""Sockets on loopback, bound before anything else happens, so that a taken port is found at once.

While a broker is down its port stays bound, though nobody listens on it: clients are refused, as they should
be, and nobody else gets the port. (A client that keeps knocking on a free ephemeral port can even find itself
connected to itself.)
"""

import contextlib
import socket

from kelpie.lab.lab_errors import LabError

HOST = "127.0.0.1"


def bind(port: int) -> socket.socket:
    """A socket bound to the port; 0 leaves the choice to the system. Raises LabError."""
    if not 0 <= port < 65_536:
        raise LabError(f"Port {port} does not exist; ports go from 1 to 65535.")
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # As Kafka: connections that linger in TIME_WAIT do not make a port taken.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((HOST, port))
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        raise LabError(
            f"Port {port} of {HOST} cannot be had ({error.strerror}). Choose another one, or none to get one "
            "that is free."
        ) from None
    return bound


def bind_all(count: int, first: int | None) -> list[socket.socket]:
    """`first` and the ports after it, or any that are free. All of them, or none."""
    with contextlib.ExitStack() as undo:
        sockets = [undo.enter_context(bind(first + at if first else 0)) for at in range(count)]
        for bound in sockets:
            # Two sockets may be bound to one port as long as neither listens.
            try:
                bound.listen()
            except OSError as error:
                port = bound.getsockname()[1]
                raise LabError(f"Port {port} of {HOST} cannot be had ({error.strerror}).") from None
        undo.pop_all()
        return sockets
