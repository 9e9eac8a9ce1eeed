"""Sends what has changed to an HTTP address: `kelpie doctor --watch --notify URL`.

A delivery has a time limit as a whole, and few attempts. Redirects are not followed: a secret would go along.
What could not be delivered is not lost: the next look is compared with the last one that was delivered.
Addresses and headers may hold secrets, so words about failures name the host alone.
"""

import asyncio
import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Finding
from kelpie.doctor.report import verdict
from kelpie.examination.examination import Changes, changes
from kelpie.model.time import Instant, iso_time

ATTEMPTS = 3
LIMIT_S = 10.0
"""Of one attempt, from the connection to the status line."""
PAUSE_S = 1.0
RENEWED_S = 120.0
"""Alertmanager takes an alert for resolved that is not sent again within five minutes."""


class BadWebhook(Exception):
    """An address or a header that cannot be. Its text says why, without the secret."""


class Format(StrEnum):
    KELPIE = "kelpie"
    ALERTMANAGER = "alertmanager"


class DeliveryFailed(Exception):
    """Its text says why, without the secret."""

    def __init__(self, text: str, *, may_pass: bool = True) -> None:
        super().__init__(text)
        self.may_pass = may_pass
        """Whether another attempt may succeed."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that takes JSON by POST. Raises BadWebhook."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    limit_s: float = LIMIT_S
    pause_s: float = PAUSE_S

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            port_is_good = parts.port != 0
        except ValueError:
            port_is_good = False
        if not port_is_good or parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadWebhook("it is no address of the kind https://HOST/PATH")
        if parts.username is not None:
            raise BadWebhook("a name and password in an address end up in logs; put them into a header")
        if not self.url.isascii() or any(sign <= " " for sign in self.url):
            raise BadWebhook("it has signs that no address has")
        for name, value in self.headers.items():
            is_token = bool(name) and name.isascii() and name.replace("-", "").replace("_", "").isalnum()
            if not is_token or not value.isascii() or not value.isprintable():
                raise BadWebhook("a header needs a name of letters and digits, and a value in one line")

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    async def deliver(self, body: bytes) -> None:
        """Raises DeliveryFailed after the last attempt."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._post(body)
                return
            except DeliveryFailed as error:
                if attempt == ATTEMPTS or not error.may_pass:
                    raise
            await asyncio.sleep(self.pause_s * attempt)

    async def _post(self, body: bytes) -> None:
        try:
            async with asyncio.timeout(self.limit_s):
                status = await self._status(body)
        except TimeoutError:
            raise DeliveryFailed(f"{self.host} did not answer within {self.limit_s:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise DeliveryFailed(
                f"the certificate of {self.host}: {error.verify_message}", may_pass=False
            ) from None
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
            raise DeliveryFailed(f"{self.host}: {type(error).__name__}") from None
        if not 200 <= status < 300:
            what = "a redirect, which is not followed" if 300 <= status < 400 else f"status {status}"
            raise DeliveryFailed(f"{self.host} answered with {what}", may_pass=status >= 500 or status == 429)

    async def _status(self, body: bytes) -> int:
        parts = urlsplit(self.url)
        is_safe = parts.scheme == "https"
        context = ssl.create_default_context() if is_safe else None
        reader, writer = await asyncio.open_connection(
            self.host, parts.port or (443 if is_safe else 80), ssl=context
        )
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            host = parts.netloc
            lines = [f"POST {target} HTTP/1.1", f"Host: {host}", "Content-Type: application/json"]
            lines += [f"Content-Length: {len(body)}", "Connection: close", "User-Agent: kelpie"]
            lines += [f"{name}: {value}" for name, value in self.headers.items()]
            writer.write("\r\n".join([*lines, "", ""]).encode("ascii") + body)
            await writer.drain()
            first = await reader.readuntil(b"\n")
        finally:
            writer.transport.abort()  # Whatever else the answer has is not read.
        words = first.split()
        if (
            len(words) < 2
            or not words[0].startswith(b"HTTP/")
            or not words[1].isdigit()
            or len(words[1]) != 3
        ):
            raise ValueError("no HTTP")
        return int(words[1])


class Notifier:
    """Tells a webhook of changes, without delaying looks. `say` gets a line when deliveries begin to fail."""

    def __init__(self, webhook: Webhook, how: Format, cluster: str, say: Callable[[str], None]) -> None:
        self._webhook = webhook
        self._format = how
        self._cluster = cluster
        self._say = say
        self._told: Diagnosis | None = None
        self._sent_at = 0.0
        self._is_failing = False
        self._task: asyncio.Task[None] | None = None

    def hear(self, diagnosis: Diagnosis) -> None:
        """Of each look. While a delivery is under way nothing is begun: the next look has these changes."""
        if self._task is not None and not self._task.done():
            return
        found = changes(self._told, diagnosis) if self._told is not None else Changes(_all(diagnosis), ())
        now = asyncio.get_running_loop().time()
        is_due = self._format is Format.ALERTMANAGER and now - self._sent_at >= RENEWED_S
        if found.new or found.gone or (is_due and _all(diagnosis)):
            body = json.dumps(self._data(diagnosis, found)).encode("ascii")
            self._task = asyncio.get_running_loop().create_task(self._deliver(diagnosis, body))

    async def finish(self) -> None:
        """Waits for a delivery that is under way; it has its own limit."""
        if self._task is not None:
            await self._task

    async def _deliver(self, diagnosis: Diagnosis, body: bytes) -> None:
        try:
            await self._webhook.deliver(body)
        except DeliveryFailed as error:
            if not self._is_failing:
                self._say(f"A notification was not delivered: {error}. The next look tries again.")
            self._is_failing = True
            return
        if self._is_failing:
            self._say("Notifications are delivered again.")
        self._told, self._is_failing = diagnosis, False
        self._sent_at = asyncio.get_running_loop().time()

    def _data(self, diagnosis: Diagnosis, found: Changes) -> Any:
        now = diagnosis.cluster.now
        if self._format is Format.ALERTMANAGER:
            firing = [_alert(finding, self._cluster, now) for finding in _all(diagnosis)]
            return firing + [_alert(finding, self._cluster, now, is_over=True) for finding in found.gone]
        return {
            "cluster": self._cluster,
            "at": iso_time(now),
            "verdict": verdict(diagnosis),
            "new": [_finding(finding) for finding in found.new],
            "gone": [_finding(finding) for finding in found.gone],
        }


def _all(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    return tuple(finding for finding in diagnosis.unacknowledged if finding.until is None)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.word,
        "group": finding.group,
        "summary": finding.summary,
        "why": finding.why,
        "since": None if finding.since is None else iso_time(finding.since),
        "remedies": [{"text": each.text, "command": each.command} for each in finding.remedies],
    }


def _alert(finding: Finding, cluster: str, now: Instant, *, is_over: bool = False) -> dict[str, Any]:
    """As Alertmanager's /api/v2/alerts takes it. Labels tell alerts apart, so no text is among them."""
    labels = {
        "alertname": "Kelpie",
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.word,
        "cluster": cluster,
        "finding": finding.id,
        **({"group": finding.group} if finding.group is not None else {}),
    }
    remedy = finding.remedies[0] if finding.remedies else None
    notes = {"summary": finding.summary, "description": finding.why}
    if remedy is not None:
        notes["remedy"] = remedy.command or remedy.text
    since = now if finding.since is None else min(finding.since, now)
    times = {"startsAt": iso_time(since), **({"endsAt": iso_time(now)} if is_over else {})}
    return {"labels": labels, "annotations": notes, **times}
