"""Who is logged in. A browser has the id of its session, signed, in a cookie; the rest is here.

So a session ends when a person logs out, when it is old, when the password changes, and with the server.
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

LIFE_S = 12 * 3600
_MOST = 10_000
ID_IN_COOKIE = "id"


@dataclass(frozen=True, slots=True)
class Session:
    name: str
    mark: str
    """Of the password, as the file had it then."""
    until_s: float


class Sessions:
    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: seconds, from anywhere on."""
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def begin(self, name: str, mark: str) -> str:
        """A new session; its id cannot be guessed. The oldest one ends where there are too many."""
        new = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._sessions) >= _MOST:
                self._sessions.popitem(last=False)
            self._sessions[new] = Session(name, mark, self._clock() + LIFE_S)
        return new

    def find(self, session_id: object) -> Session | None:
        if not isinstance(session_id, str):
            return None
        with self._lock:
            session = self._sessions.get(session_id)
            if session is not None and session.until_s <= self._clock():
                del self._sessions[session_id]
                return None
            return session

    def end(self, session_id: object) -> Session | None:
        """The session that ended, if there was one."""
        with self._lock:
            return self._sessions.pop(session_id, None) if isinstance(session_id, str) else None
