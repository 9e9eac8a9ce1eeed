"""What changes is told to an HTTP address, whatever that address does."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import wraps
from typing import Any, ParamSpec

import pytest

from kelpie.doctor.diagnosis import Diagnosis, diagnose_all
from kelpie.examination import webhook
from kelpie.examination.webhook import BadWebhook, DeliveryFailed, Format, Notifier, Webhook
from tests.doctor.building import a_case, a_cluster, a_view

P = ParamSpec("P")
SECRET = "Bearer s3cret"


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class Receiver:
    """A server that keeps what was sent, and answers as it is told."""

    def __init__(self, *answers: bytes | None) -> None:
        """The last one is repeated. None: it never answers."""
        self.answers = list(answers)
        self.requests: list[tuple[bytes, Any]] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._answer(reader, writer)
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        self.requests.append((head, json.loads(body) if body else None))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            await reader.read()  # Until the other side gives up.
        else:
            writer.write(answer)
            await writer.drain()


@asynccontextmanager
async def receiver(*answers: bytes | None) -> AsyncIterator[Receiver]:
    made = Receiver(*answers)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook?token=t0ken"
    async with server:
        yield made
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0)  # Transports close in the next step of the loop.


OK, FAILS, BUSY = b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 500 No\r\n\r\n", b"HTTP/1.1 429 No\r\n\r\n"
REFUSES = b"HTTP/1.1 403 No\r\n\r\n"


def _hook(url: str, **fields: Any) -> Webhook:
    return Webhook(url, {"Authorization": SECRET}, **{"limit_s": 0.5, "pause_s": 0.0, **fields})


@in_loop
async def test_it_is_delivered_with_its_headers() -> None:
    async with receiver(OK) as there:
        await _hook(there.url).deliver(b"{}")
        ((head, body),) = there.requests
    assert head.startswith(b"POST /hook?token=t0ken HTTP/1.1\r\n")
    assert f"Authorization: {SECRET}\r\n".encode() in head
    assert body == {}


@pytest.mark.parametrize("first", [FAILS, BUSY, None, b"nonsense\r\n", b""])
@in_loop
async def test_what_may_pass_is_tried_again(first: bytes | None) -> None:
    async with receiver(first, OK) as there:
        await _hook(there.url).deliver(b"{}")
        assert len(there.requests) == 2


@pytest.mark.parametrize(("answer", "attempts"), [(FAILS, 3), (None, 3), (REFUSES, 1)])
@in_loop
async def test_attempts_are_few_and_what_is_said_holds_no_secret(answer: bytes | None, attempts: int) -> None:
    async with receiver(answer) as there:
        with pytest.raises(DeliveryFailed) as failed:
            await _hook(there.url).deliver(b"{}")
        assert len(there.requests) == attempts
    assert "127.0.0.1" in str(failed.value)
    assert "t0ken" not in str(failed.value)
    assert "s3cret" not in str(failed.value)


@in_loop
async def test_redirects_are_not_followed() -> None:
    """The header with the secret would go to wherever the answer says."""
    async with receiver(OK) as elsewhere:
        redirect = f"HTTP/1.1 307 There\r\nLocation: {elsewhere.url}\r\n\r\n".encode()
        async with receiver(redirect) as there:
            with pytest.raises(DeliveryFailed, match="not followed"):
                await _hook(there.url).deliver(b"{}")
            assert len(there.requests) == 1
        assert not elsewhere.requests


@in_loop
async def test_nothing_is_sent_to_a_server_that_speaks_no_tls() -> None:
    async with receiver(OK) as there:
        with pytest.raises(DeliveryFailed):
            await _hook(there.url.replace("http:", "https:")).deliver(b"{}")
        assert not there.requests


@pytest.mark.parametrize(
    "url",
    ["ftp://host/", "https:///path", "kafka:9092", "http://na@host/", "http://host/a b", "http://h:x/"],
)
def test_an_address_that_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(BadWebhook) as refused:
        Webhook(url)
    assert url not in str(refused.value), "it may hold a secret"


@pytest.mark.parametrize("headers", [{"A": "b\r\nC: d"}, {"A b": "c"}, {"": "c"}, {"A": "ä"}])
def test_a_header_that_cannot_be_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(BadWebhook):
        Webhook("https://host/", headers)


def _found(*groups: str) -> Diagnosis:
    """Each of these groups has no coordinator, since its offsets partition has no leader."""
    cluster = a_cluster(*(a_view(number, -1, replicas=(2,)) for number in range(50)), dead=[2])
    return diagnose_all(cluster, [a_case(group, cluster, listed=None) for group in groups])


async def _told(notifier: Notifier, *looks: Diagnosis) -> None:
    for look in looks:
        notifier.hear(look)
        await notifier.finish()


@in_loop
async def test_only_changes_are_told() -> None:
    async with receiver(OK) as there:
        notifier = Notifier(_hook(there.url), Format.KELPIE, "main", print)
        await _told(
            notifier, _found("billing"), _found("billing"), _found("billing", "audit"), _found("audit")
        )
    first, second, third = [body for _, body in there.requests]
    assert "billing" in {finding["group"] for finding in first["new"]}
    assert {finding["group"] for finding in second["new"]} == {"audit"}
    assert "billing" in {finding["group"] for finding in third["gone"]}
    assert not third["new"]


@in_loop
async def test_what_could_not_be_delivered_is_told_with_the_next_look_and_complained_of_once() -> None:
    said: list[str] = []
    async with receiver(REFUSES, REFUSES, OK) as there:
        notifier = Notifier(_hook(there.url), Format.KELPIE, "main", said.append)
        await _told(notifier, _found("billing"), _found("billing"), _found("billing"))
    assert "billing" in {finding["group"] for finding in there.requests[-1][1]["new"]}
    assert len(there.requests) == 3
    assert [line.split(":")[0] for line in said] == [
        "A notification was not delivered",
        "Notifications are delivered again.",
    ]


@in_loop
async def test_a_server_that_never_answers_delays_no_look() -> None:
    """A look that comes meanwhile begins no second delivery."""
    async with receiver(None) as there:
        notifier = Notifier(_hook(there.url, limit_s=30), Format.KELPIE, "main", print)
        notifier.hear(_found("billing"))
        async with asyncio.timeout(30):
            while not there.requests:
                await asyncio.sleep(0.01)
        notifier.hear(_found("billing", "audit"))
        assert len(there.requests) == 1
        assert notifier._task is not None
        notifier._task.cancel()


@in_loop
async def test_alertmanager_gets_what_fires_and_what_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """It forgets what is not sent again, so that alerts are sent again after a while."""
    async with receiver(OK) as there:
        notifier = Notifier(_hook(there.url), Format.ALERTMANAGER, "main", print)
        await _told(notifier, _found("billing"), _found("billing"), _found("audit"))
        assert len(there.requests) == 2
        monkeypatch.setattr(webhook, "RENEWED_S", 0.0)
        await _told(notifier, _found("audit"))
    first, second, third = [body for _, body in there.requests]
    alert = next(each for each in first if each["labels"].get("group") == "billing")
    assert alert["labels"]["alertname"] == "Kelpie"
    assert (alert["labels"]["severity"], "endsAt" in alert) == ("critical", False)
    assert alert["annotations"]["summary"]
    over = {each["labels"].get("group") for each in second if "endsAt" in each}
    assert "billing" in over
    assert "audit" not in over
    assert third == [each for each in second if "endsAt" not in each]
