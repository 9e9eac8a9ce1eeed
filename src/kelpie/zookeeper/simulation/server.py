"""A ZooKeeper server on the virtual clock.

- Requests of one connection arrive in order, and so do its answers and events. Latencies are random.
- Sessions expire as in SessionTrackerImpl: the time of the last touch plus the timeout, rounded up to the
  next tick. A client that has nothing to ask sends a ping every third of its session (ClientCnxn: half of its
  read timeout, which is two thirds of the session; at most 10 s). So a killed client's session of 6 s, with
  ticks of 2 s, ends after 4 to 8 s.
- A paused server answers nothing and expires nothing. When it goes on, what is overdue expires first.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from kelpie.model.time import Instant
from kelpie.simulation.agenda import Agenda, Chance
from kelpie.zookeeper.procedures import Answers
from kelpie.zookeeper.requests import Answer, Children, Read, Request
from kelpie.zookeeper.simulation.tree import ZookeeperTree

_MOST_PING_MS = 10_000


@dataclass(frozen=True, slots=True)
class Latency:
    """Of one request and its answer, in ms; some take longer."""

    usual: tuple[float, float] = (0.5, 4.0)
    slow: tuple[float, float] = (10.0, 60.0)
    slow_share: float = 0.03

    def draw(self, chance: Chance) -> float:
        return chance.uniform(*(self.slow if chance.random() < self.slow_share else self.usual))


@dataclass(eq=False, slots=True)
class Connection:
    """Of one client, through all connections of one session."""

    session: int
    timeout_ms: int
    watch_fired: Callable[[str], None]
    expired: Callable[[], None]
    """The client learns it when it connects again; if its connection is open, at once."""
    is_open: bool = True
    number: int = 0
    """Counts the connections. What an earlier one has not answered stays unanswered."""
    touched_at: Instant = 0
    free_at: float = 0.0
    """When the last request that was sent has been carried out."""
    heard_at: float = 0.0
    """When the last answer or event reaches the client."""
    missed: list[str] = field(default_factory=list)
    """Watches that fired while there was no connection. The client hears of them when it is back."""


class SimulatedZookeeper:
    def __init__(
        self, agenda: Agenda, chance: Chance, *, tick_ms: int = 2_000, latency: Latency | None = None
    ) -> None:
        self.tree = ZookeeperTree()
        self.agenda = agenda
        self.is_paused = False
        self.expiries: dict[int, Instant] = {}
        """When which session expired."""
        self._chance = chance
        self._tick_ms = tick_ms
        self._latency = latency or Latency()
        self._phase = chance.randrange(0, tick_ms)
        """The server's ticks do not begin at a full second."""
        self._connections: dict[int, Connection] = {}
        self._waiting: list[Callable[[], None]] = []
        """What arrived while the server was paused."""

    # Sessions.

    def connect(
        self, timeout_ms: int, watch_fired: Callable[[str], None], expired: Callable[[], None]
    ) -> Connection:
        """A new session."""
        session = self.tree.open_session()
        connection = Connection(session, timeout_ms, watch_fired, expired, touched_at=self.agenda.now)
        self._connections[session] = connection
        return connection

    def reconnect(self, connection: Connection) -> bool:
        """Go on with a session; False if it has expired."""
        if not self.tree.has_session(connection.session):
            return False
        connection.is_open = True
        connection.touched_at = self.agenda.now
        connection.heard_at = float(self.agenda.now)
        missed, connection.missed = connection.missed, []
        for path in missed:
            self._to_client(connection, connection.watch_fired, path)
        return True

    def close(self, connection: Connection) -> None:
        """The client closes its session, and hears nothing more."""

        def end() -> None:
            if self.tree.has_session(connection.session):
                self.tree.end_session(connection.session)
                self._connections.pop(connection.session, None)
                self._send_fired()

        if connection.is_open:
            connection.is_open = False
            self._at_server(connection, self._latency.draw(self._chance), end)

    def drop(self, connection: Connection) -> None:
        """The connection is gone, without a word. The session lives until its timeout."""
        if connection.is_open:
            connection.touched_at = self._last_ping(connection)
            connection.is_open = False
            connection.number += 1
            self.agenda.at(self._expires_at(connection), self._expire_if_due, connection)

    def hold(self, connection: Connection, delay_ms: float) -> None:
        """The client is busy for so long before it sends its next request."""
        connection.free_at = max(connection.free_at, float(self.agenda.now)) + delay_ms

    def pause(self) -> None:
        """No answer, no expiry, and no ping is heard."""
        self.is_paused = True
        for connection in self._connections.values():
            if connection.is_open:
                connection.touched_at = self._last_ping(connection)

    def resume(self) -> None:
        self.is_paused = False
        for connection in list(self._connections.values()):
            if self.agenda.now >= self._expires_at(connection):
                self._expire(connection)
            elif connection.is_open:
                connection.touched_at = self.agenda.now
            else:
                self.agenda.at(self._expires_at(connection), self._expire_if_due, connection)
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()

    # Requests.

    def ask(
        self, connection: Connection, requests: tuple[Request, ...], answered: Callable[[Answers], None]
    ) -> None:
        """One after the other, each with its own latency. Reads in a row are looked at together."""
        answers: list[Answer] = []
        number = connection.number

        def carry_out(chunk: tuple[Request, ...], *, is_first: bool) -> None:
            is_gone = connection.number != number or not connection.is_open
            if not self.tree.has_session(connection.session) or (is_gone and not is_first):
                return  # Of a client that is gone, only what it has sent already arrives.
            if not is_gone:
                connection.touched_at = self.agenda.now
            answers.extend(self.tree.carry_out(connection.session, request) for request in chunk)
            self._send_fired()
            if len(answers) == len(requests):
                self._to_client(connection, answered, tuple(answers))

        for at, chunk in enumerate(_chunks(requests)):
            delay = sum(self._latency.draw(self._chance) for _ in chunk)
            self._at_server(connection, delay, partial(carry_out, chunk, is_first=not at))

    def change(self, session: int, request: Request) -> None:
        """By someone else, at once."""
        self.tree.carry_out(session, request)
        self._send_fired()

    def _at_server(self, connection: Connection, delay_ms: float, action: Callable[[], None]) -> None:
        connection.free_at = max(connection.free_at, float(self.agenda.now)) + delay_ms

        def arrive() -> None:
            if self.is_paused:
                self._waiting.append(action)
            else:
                action()

        self.agenda.at(int(connection.free_at), arrive)

    def _to_client(self, connection: Connection, action: Callable[..., None], argument: object) -> None:
        """Answers of an earlier connection are lost; a watch that fired is told later."""
        number = connection.number
        delay = self._latency.draw(self._chance) / 2
        connection.heard_at = max(connection.heard_at, self.agenda.now + delay)

        def hear() -> None:
            if connection.is_open and connection.number == number:
                action(argument)
            elif isinstance(argument, str):
                if connection.is_open:
                    action(argument)
                else:
                    connection.missed.append(argument)

        self.agenda.at(int(connection.heard_at), hear)

    def _send_fired(self) -> None:
        for session, path in self.tree.take_fired():
            connection = self._connections.get(session)
            if connection is not None:
                self._to_client(connection, connection.watch_fired, path)

    # Expiry.

    def _last_ping(self, connection: Connection) -> Instant:
        """When an idle client was heard last."""
        if self.is_paused:
            return connection.touched_at
        every = max(1, min(connection.timeout_ms // 3, _MOST_PING_MS))
        idle = self.agenda.now - connection.touched_at
        return connection.touched_at + idle // every * every

    def _expires_at(self, connection: Connection) -> Instant:
        due = connection.touched_at + connection.timeout_ms - self._phase
        return (due // self._tick_ms + 1) * self._tick_ms + self._phase

    def _expire_if_due(self, connection: Connection) -> None:
        if not self.is_paused and not connection.is_open and self.agenda.now >= self._expires_at(connection):
            self._expire(connection)

    def _expire(self, connection: Connection) -> None:
        if self._connections.pop(connection.session, None) is None:
            return
        self.expiries[connection.session] = self.agenda.now
        self.tree.end_session(connection.session)
        self._send_fired()
        if connection.is_open:
            connection.is_open = False
            connection.expired()


def _chunks(requests: tuple[Request, ...]) -> list[tuple[Request, ...]]:
    """Reads that follow each other, together; everything else alone."""
    chunks: list[list[Request]] = []
    for request in requests:
        is_read = isinstance(request, Children | Read)
        if is_read and chunks and isinstance(chunks[-1][0], Children | Read):
            chunks[-1].append(request)
        else:
            chunks.append([request])
    return [tuple(chunk) for chunk in chunks]
