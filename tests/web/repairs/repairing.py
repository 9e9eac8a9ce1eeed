"""A site whose people may repair a lab cluster."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.testclient import TestClient

from kelpie.client.settings import Settings
from kelpie.examination import Examination
from kelpie.lab import SyncCluster
from kelpie.observations import Observations
from kelpie.store import Store
from kelpie.web.audit_log import AuditLog
from kelpie.web.repairs.requests import RepairTarget
from kelpie.web.repairs.section import RepairSection
from kelpie.web.repairs.workshop import Workshop
from kelpie.web.watch import Watch
from tests.web.access.logging_in import Site, log_in, token_of
from tests.web.watching import looked

LIMIT_S = 60.0
CLUSTER = "/clusters/main"
NOTHING = Observations()


class Bench:
    """The site, and what a person does on it."""

    def __init__(self, site: Site, workshop: Workshop, browser: TestClient) -> None:
        self.site = site
        self.workshop = workshop
        self.browser = browser
        self.token = token_of(browser, "/")
        self._noted = 0

    def begin(self) -> None:
        """A test begins: what was noted before is not its own."""
        self._noted = len(self.workshop.audit.tail(100_000))

    @property
    def events(self) -> list[dict[str, Any]]:
        """What was noted since, newest last."""
        lines = self.workshop.audit.tail(100_000)
        return [dict(line) for line in reversed(lines)][self._noted :]

    def post(self, path: str, fields: dict[str, str], browser: TestClient | None = None) -> Any:
        token = self.token if browser is None else token_of(browser, "/")
        return (browser or self.browser).post(path, data={"csrftoken": token, **fields})

    def plan(self, repair: str, group: str = "", *, change: str = "", **fields: str) -> dict[str, Any]:
        """Asks for a plan, and waits for it."""
        query = {"repair": repair, "group": group, "change": change}
        query = {name: value for name, value in query.items() if value}
        answer = self.post(f"{CLUSTER}/repairs?{urlencode(query)}", fields)
        assert answer.status_code == 303, answer.text
        return self.made(answer.headers["location"])

    def made(self, address: str) -> dict[str, Any]:
        """The twin of a plan's page, when it is made."""
        key = address.partition("id=")[2]
        _until(lambda: getattr(self.workshop.plans.find("main", key), "is_made", False))
        return self._twin("plan", key)

    def apply(self, plan: dict[str, Any], typed: str, browser: TestClient | None = None) -> Any:
        return self.post(f"{CLUSTER}/plan?id={plan['key']}", {"confirmation": typed}, browser)

    def applied(self, plan: dict[str, Any], typed: str) -> dict[str, Any]:
        """Applies a plan, and waits for the end."""
        answer = self.apply(plan, typed)
        assert answer.status_code == 303, answer.text
        return self.ended(answer.headers["location"])

    def ended(self, address: str) -> dict[str, Any]:
        """The twin of a repair's page, when it has ended."""
        key = address.partition("id=")[2]
        _until(lambda: getattr(self.workshop.runs.find("main", key), "ended", None) is not None)
        return self._twin("run", key)

    def _twin(self, kind: str, key: str) -> dict[str, Any]:
        data: dict[str, Any] = self.browser.get(f"{CLUSTER}/{kind}.json?id={key}").json()
        return data

    def page(self, data: dict[str, Any], kind: str = "plan") -> str:
        answer = self.browser.get(f"{CLUSTER}/{kind}?id={data['key']}")
        assert answer.status_code == 200
        return answer.text


@contextmanager
def a_bench(
    folder: Path,
    cluster: SyncCluster,
    rows: Observations = NOTHING,
    *,
    zookeeper: str | None = None,
    **site: Any,
) -> Iterator[Bench]:
    """`rows`: what the other pages show."""
    settings = Settings.of(cluster.bootstrap_servers, request_timeout_s=10.0, connect_timeout_s=10.0)
    audit = AuditLog(folder / "repairs.jsonl")
    target = RepairTarget("main", settings, Store(folder / "store"), zookeeper=zookeeper)
    with Workshop([target], audit) as workshop, Watch("main", Examination(evidence=rows), 60) as watch:
        looked(watch)
        made = Site(folder, [watch], [RepairSection(workshop)], **site)
        with made.browser() as browser:  # One event loop for all requests.
            assert log_in(browser).status_code == 303
            yield Bench(made, workshop, browser)


def _until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def text_of(html: str) -> str:
    """What a person reads of it, roughly."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())
