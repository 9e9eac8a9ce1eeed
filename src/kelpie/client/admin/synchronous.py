"""The admin client for code without an event loop: the same methods, on a loop in a thread of its own.

with SyncAdmin("kafka-1:9092") as admin:
print([state.group for state in admin.list_groups()])
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from kelpie.client.admin.admin import Admin
from kelpie.client.loop_thread import LoopThread
from kelpie.client.settings import Settings

if TYPE_CHECKING:
    from typing import Self

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: "Callable[Concatenate[Admin, P], Awaitable[T]]",
) -> "Callable[Concatenate[SyncAdmin, P], T]":
    """A coroutine of `Admin` as a method that waits for its result."""

    @wraps(method)
    def call(self: "SyncAdmin", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._thread.run(lambda: method(self._admin, *args, **kwargs))

    return call


class SyncAdmin:
    """`Admin` without `await`. Its methods have the names, arguments and results of Admin's."""

    def __init__(self, where: str | Settings, *, patience_s: float = 0.0) -> None:
        """Connects at once; see `Admin.open`. Raises BadSettings, ClientError."""
        self._thread = LoopThread("kelpie-admin")
        self._thread.start()
        try:
            self._admin = self._thread.run(lambda: Admin.open(where, patience_s=patience_s))
        except BaseException:
            self._thread.stop()
            raise

    def close(self) -> None:
        """Ends all connections, and the thread. Closing twice is harmless."""
        if self._thread.runs:
            try:
                self._thread.run(self._admin.close)
            finally:
                self._thread.stop()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    brokers = _blocking(Admin.brokers)
    topics = _blocking(Admin.topics)
    settings = _blocking(Admin.settings)
    list_groups = _blocking(Admin.list_groups)
    describe_all_groups = _blocking(Admin.describe_all_groups)
    coordinators = _blocking(Admin.coordinators)
    describe_groups = _blocking(Admin.describe_groups)
    committed = _blocking(Admin.committed)
    commit = _blocking(Admin.commit)
    delete_offsets = _blocking(Admin.delete_offsets)
    delete_groups = _blocking(Admin.delete_groups)
    log_ends = _blocking(Admin.log_ends)
    log_sizes = _blocking(Admin.log_sizes)
    offsets_at = _blocking(Admin.offsets_at)
    open_transactions = _blocking(Admin.open_transactions)
    elect = _blocking(Admin.elect)
    reassign = _blocking(Admin.reassign)
    reassignments = _blocking(Admin.reassignments)
