"""Connections to ZooKeeper, through the library kazoo.

Kafka before 2.4 moves replicas through it, consumers of Kafka 0.8 keep their offsets in it, and KoP (Kafka on
Pulsar) keeps in it which client belongs to which group.
"""

import importlib
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kelpie.model.kelpie_error import KelpieError

BROKERS = "/brokers/ids"
_LONGEST_WAIT_S = 2.0


class ZooKeeperError(KelpieError):
    """ZooKeeper cannot be asked. The text says why, and what to do."""


def new_client(hosts: str, session_s: float, *, read_only: bool = False) -> Any:
    """A kazoo client that is not started yet. Raises ZooKeeperError."""
    try:
        kazoo = importlib.import_module("kazoo.client")
    except ImportError:
        raise ZooKeeperError(
            "Kelpie speaks to ZooKeeper through the library kazoo, which is not installed: pip install "
            "'kelpie-kafka[zookeeper]'."
        ) from None
    # Kazoo logs each attempt; the errors of this module say all that a user needs.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    try:
        # Kazoo would wait up to a minute between two tries to connect, when ZooKeeper was away for minutes.
        retry = {"max_tries": -1, "max_delay": _LONGEST_WAIT_S}
        return kazoo.KazooClient(hosts, timeout=session_s, read_only=read_only, connection_retry=retry)
    except ValueError as error:
        raise ZooKeeperError(
            f"{hosts!r} is no address of ZooKeeper: {error}. Write HOST:PORT[/PATH]."
        ) from None


def no_cluster(hosts: str) -> ZooKeeperError:
    return ZooKeeperError(
        f"ZooKeeper at {hosts} keeps no Kafka cluster at this path: {BROKERS} is not there. Does "
        "zookeeper.connect of the brokers end in a path (zk-1:2181/kafka)?"
    )


def no_path(hosts: str, chroot: str) -> ZooKeeperError:
    return ZooKeeperError(f"ZooKeeper at {hosts} has no node {chroot}. Is the path behind HOST:PORT right?")


def no_answer(hosts: str, limit_s: float) -> ZooKeeperError:
    return ZooKeeperError(f"ZooKeeper at {hosts} did not answer within {limit_s:g} s.")


@contextmanager
def connected(
    hosts: str,
    limit_s: float,
    *,
    read_only: bool = False,
    of_kafka: bool = True,
    session_s: float | None = None,
) -> Iterator[Any]:
    """A kazoo client. `hosts` as zookeeper.connect has them: "zk-1:2181,zk-2:2181/kafka".

    `of_kafka`: it must be the ZooKeeper of a Kafka cluster, with its brokers in it. `session_s`: after so
    long the server gives a session up whose client is silent; `limit_s` if left out. Every call of the client
    blocks, for the time limit at most. Raises ZooKeeperError, also for what goes wrong while the client is
    used.
    """
    client = new_client(hosts, session_s or limit_s, read_only=read_only)
    timeouts = importlib.import_module("kazoo.handlers.threading")
    try:
        _start(client, hosts, limit_s)
        if of_kafka and not client.exists(BROKERS):
            raise no_cluster(hosts)
        yield client
    except timeouts.KazooTimeoutError:
        raise no_answer(hosts, limit_s) from None
    except kazoo_exceptions().KazooException as error:
        reason = str(error) or type(error).__name__
        raise ZooKeeperError(f"ZooKeeper at {hosts} refused or went away: {reason}.") from None
    finally:
        client.stop()
        client.close()


def abandon(client: Any) -> None:
    """Breaks the connection as the death of a process does: the session lives on until its timeout.

    Kazoo can only end a session properly, so this reaches into it: a client that is stopped does not connect
    again when its socket breaks.
    """
    client._stopped.set()
    broken = client._connection._socket
    if broken is not None:
        with suppress(OSError):
            broken.shutdown(socket.SHUT_RDWR)
    client._safe_close()


def _start(client: Any, hosts: str, limit_s: float) -> None:
    """Kazoo's own `start` also warns, on the terminal, of a path that does not exist."""
    client.start_async().wait(timeout=limit_s)
    if not client.connected:
        raise no_answer(hosts, limit_s)
    if client.chroot and not client.exists("/"):
        raise no_path(hosts, client.chroot)


def kazoo_exceptions() -> Any:
    """Kazoo's module of exceptions: it is imported only when it is needed."""
    return importlib.import_module("kazoo.exceptions")
