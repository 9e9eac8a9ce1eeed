"""Where a scenario plays: it tells the audience what happens, and counts what should have happened."""

import asyncio
import textwrap
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.client import RawClient

if TYPE_CHECKING:
    from typing import Any, Self

T = TypeVar("T")

WIDTH = 80
_PATIENCE_S = 15.0


class Stage:
    """What a scenario gets. All that it opens is closed at the end."""

    def __init__(
        self,
        persona: str,
        tell: Callable[[str], None],
        new_cluster: "Callable[..., Cluster]" = Cluster,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self.persona = persona
        self.failures: list[str] = []
        self._tell = tell
        self._new_cluster = new_cluster
        self._patience_s = patience_s
        self._open = AsyncExitStack()
        self._steps = 0

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.__aexit__(kind, error, trace)

    async def cluster(self, brokers: int, **options: "Any") -> Cluster:
        """A cluster of the persona that the audience chose. Options are those of `Cluster`."""
        return await self._open.enter_async_context(
            self._new_cluster(brokers, persona=self.persona, **options)
        )

    async def client(self, client_id: str, address: str) -> RawClient:
        return await self._open.enter_async_context(RawClient(client_id, address))

    def step(self, text: str) -> None:
        """The next thing that is done."""
        self._steps += 1
        start = f"{self._steps}. "
        blank = "\n" if self._steps > 1 else ""
        self._tell(
            blank + textwrap.fill(text, WIDTH, initial_indent=start, subsequent_indent=" " * len(start))
        )

    def say(self, text: str) -> None:
        """Something that is seen."""
        self._tell(textwrap.fill(text, WIDTH, initial_indent="   ", subsequent_indent="     "))

    def expect(self, came: object, text: str) -> None:
        """Something that must be so."""
        self.say(f"{'ok' if came else 'NOT SO'}: {text}")
        if not came:
            self.failures.append(text)

    async def until(self, look: Callable[[], Awaitable[T]], wanted: Callable[[T], bool]) -> T:
        """Look again and again until it is as wanted; after a while, what was seen last."""
        deadline = asyncio.get_running_loop().time() + self._patience_s
        while True:
            seen = await look()
            if wanted(seen) or asyncio.get_running_loop().time() > deadline:
                return seen
            await asyncio.sleep(0.05)
