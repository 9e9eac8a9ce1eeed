"""A client that hides nothing: it sends one request, and gives the answer as the codec reads it."""

import asyncio
import contextlib
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kelpie.wire.framing import RequestHeader, decode_response, encode_request
from kelpie.wire.schema import declaration_of

if TYPE_CHECKING:
    from typing import Self

_ANSWER_LIMIT_S = 30.0


class RawClient:
    """One connection to one broker; it opens on first use, and again after it broke."""

    def __init__(self, client_id: str, address: str) -> None:
        self.client_id = client_id
        self.address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._correlation = 0

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def ask(self, request: Any, version: int, limit_s: float = _ANSWER_LIMIT_S) -> Any:
        """The answer. Raises OSError when the connection breaks, TimeoutError when nothing comes."""
        api_key = declaration_of(type(request)).api_key
        assert api_key is not None
        self._correlation += 1
        header = RequestHeader(api_key, version, self._correlation, self.client_id)
        try:
            async with asyncio.timeout(limit_s):  # wait_for may lose a cancellation (before Python 3.12).
                frame = await self._exchange(encode_request(header, request))
        except (OSError, asyncio.IncompleteReadError) as error:
            await self.close()
            if isinstance(error, asyncio.IncompleteReadError):
                raise ConnectionResetError(f"{self.address} closed the connection") from None
            raise
        correlation, response = decode_response(api_key, version, frame)
        if correlation != self._correlation:
            raise ConnectionError(f"{self.address} answered request {correlation}, not {self._correlation}")
        return response

    async def close(self) -> None:
        if self._streams is not None:
            writer = self._streams[1]
            self._streams = None
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _exchange(self, frame: bytes) -> bytes:
        if self._streams is None:
            host, _, port = self.address.rpartition(":")
            self._streams = await asyncio.open_connection(host, int(port))
        reader, writer = self._streams
        writer.write(frame)
        await writer.drain()
        length = int.from_bytes(await reader.readexactly(4))
        return await reader.readexactly(length)
