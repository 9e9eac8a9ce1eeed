"""Free ports on loopback.

Ports below the system's ephemeral range are preferred: while a broker is down, its port must not go to some
outgoing connection, and a client that keeps connecting to a closed ephemeral port may connect to itself.
"""

import contextlib
import random
import socket
from pathlib import Path

from kelpie.real.cluster_errors import ClusterRefused, RealError

HOST = "127.0.0.1"
_LOWEST = 10_240
_ATTEMPTS = 500


def free(count: int) -> list[int]:
    """That many distinct ports. Another process may still take one: be ready to try again."""
    with contextlib.ExitStack() as bound:
        ports: list[int] = []
        for attempt in range(_ATTEMPTS):
            probe = bound.enter_context(_socket())
            try:
                # Port 0 leaves the choice to the system.
                probe.bind((HOST, _candidate() if attempt < _ATTEMPTS // 2 else 0))
            except OSError:
                probe.close()
                continue
            ports.append(probe.getsockname()[1])
            if len(ports) == count:
                return ports
    raise RealError(f"No {count} free ports were found on {HOST}.")


def require(ports: list[int]) -> None:
    """Refuse ports that a person chose and that cannot be had."""
    for port in ports:
        if not 0 < port < 65_536:
            raise ClusterRefused(f"Port {port} does not exist; ports go from 1 to 65535.")
        with _socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError as error:
                raise ClusterRefused(
                    f"Port {port} of {HOST} cannot be had ({error.strerror}). Choose another with --port, "
                    "or leave --port away to get a free one."
                ) from None


def _socket() -> socket.socket:
    probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Kafka sets it too: connections of a dead broker that linger in TIME_WAIT do not make its port taken.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return probe


def _candidate() -> int:
    highest = _ephemeral_start()
    if highest - _LOWEST < 1000:
        return 0
    return random.randrange(_LOWEST, highest)


def _ephemeral_start() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768
