"""Broken requests to the control API of the lab: each is read, or refused in words.

`make test` reads some thousand, `make fuzz` a hundred thousand and more (KELPIE_FUZZ_REQUESTS).
"""

import asyncio
from random import Random

from kelpie.lab.http import Request, RequestRefused, read_request
from tests.fuzzing.mutation import EDGES, mutated, run_seeds, runs

REQUESTS = runs("KELPIE_FUZZ_REQUESTS", 3000)
SEEDS = (
    b"GET /state HTTP/1.1\r\nHost: localhost:9\r\nConnection: close\r\n\r\n",
    b'POST /faults HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 14\r\n\r\n{"kind": "no"}',
    b"POST /brokers/1/kill HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n",
)
WORDS = (
    *EDGES,
    b"\r\n",
    b"\n",
    b"\0",
    b"%ff",
    b"%00",
    b"..",
    b"9" * 5000,
    "²".encode(),
    b"-1",
    b" ",
    b"Host: evil\r\n",
)


def test_broken_requests_are_read_or_refused() -> None:
    """No other exception, whatever arrives."""
    outcomes: set[str] = set()

    def run(chance: Random) -> None:
        sent = mutated(chance.choice(SEEDS), chance, edges=WORDS, others=SEEDS)
        outcomes.add(asyncio.run(_outcome(sent)))

    run_seeds(run, REQUESTS, every=10_000)
    assert len(outcomes) == 1 or {"read", "ended", "400", "403"} <= outcomes


async def _outcome(sent: bytes) -> str:
    reader = asyncio.StreamReader()
    reader.feed_data(sent)
    reader.feed_eof()
    try:
        request = await read_request(reader)
    except RequestRefused as refused:
        return str(refused.status)
    except asyncio.IncompleteReadError:
        return "ended"
    if request is None:
        return "ended"
    assert isinstance(request, Request)
    assert all(request.path)
    return "read"
