"""Repairs with a real browser: from the page of a group to the undo, for everybody and without scripts."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from playwright.sync_api import Browser, Page

from kelpie.lab import SyncCluster
from kelpie.observations import Committed, Listing, Observations
from kelpie.web.repairs import section
from tests.doctor.building import NOW, a_broker, an_offsets_topic
from tests.repair.scene import a_cluster, commit, committed
from tests.web.access.logging_in import NAME, PASSWORD
from tests.web.browsing import assert_narrow, assert_usable, served, window
from tests.web.repairs.repairing import Bench, a_bench

T = TypeVar("T")
GROUPS = {
    "billing": "billing",
    "<b>a\nb</b>\u202e": "<b>a\\x0ab</b>\\u202e",
}
"""Names, and what a person types to confirm."""
PICTURES = os.environ.get("KELPIE_PICTURES")
"""A folder in which to keep pictures of the pages, to look at."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SyncCluster]:
    made = a_cluster()
    yield _apart(made.__enter__)
    _apart(lambda: made.__exit__(None, None, None))


@pytest.fixture
def bench(tmp_path: Path, cluster: SyncCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("KELPIE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(section, "_RENEW_S", 1)  # Pages without scripts come again so often.
    rows = Observations(
        brokers=[a_broker(1)],
        partitions=an_offsets_topic(brokers=[1], replicas=1),
        listings=[Listing(1, tuple(GROUPS), at=NOW, source="broker 1")],
        committed=[Committed(name, "orders", 0, 5, at=NOW, source="broker 1") for name in GROUPS],
    )
    for name in GROUPS:
        _apart(partial(commit, cluster, name, {0: 4}))
    with a_bench(tmp_path, cluster, rows, hosts=["127.0.0.1", "kelpie.test"]) as made:
        yield made


@pytest.mark.parametrize(
    ("name", "has_javascript", "width"), [("billing", True, 1280), ("<b>a\nb</b>\u202e", False, 360)]
)
def test_from_the_page_of_a_group_to_the_undo(
    browser: Browser, bench: Bench, cluster: SyncCluster, name: str, *, has_javascript: bool, width: int
) -> None:
    complaints: list[str] = []
    with (
        served(bench.site.app) as address,
        window(browser, java_script_enabled=has_javascript, viewport={"width": width, "height": 900}) as page,
    ):
        page.on("console", lambda message: complaints.append(message.text))

        def look(what: str) -> None:
            if has_javascript:
                assert_usable(page)
            assert_narrow(page)
            if PICTURES:
                page.screenshot(path=f"{PICTURES}/{what}-{width}.png", full_page=True)

        page.goto(f"{address}/clusters/main/groups")
        page.get_by_label("Name").fill(NAME)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("rowheader").get_by_role("link", name=GROUPS[name]).click()
        page.get_by_role("link", name="Repair this group").click()
        look("forms")
        reset = page.locator("form").filter(has_text="Where the group should go on")
        reset.get_by_label("some records further, or back").check()
        reset.get_by_label("Records", exact=True).fill("-3")
        reset.get_by_role("button", name="Show the plan").click()
        page.get_by_role("heading", name="Apply", exact=True).wait_for()
        look("plan")
        page.get_by_label("To confirm, type:").fill("something else")
        page.get_by_role("button", name="Apply the plan").click()
        assert "is not the name" in page.get_by_role("alert").inner_text()
        look("refused")
        assert _apart(lambda: committed(cluster, name)) == {0: 4}
        page.get_by_label("To confirm, type:").fill(GROUPS[name])
        page.get_by_role("button", name="Apply the plan").click()
        _done(page)
        look("done")
        assert _apart(lambda: committed(cluster, name)) == {0: 1}
        page.get_by_role("button", name="Show the plan to undo it").click()
        page.get_by_label("To confirm, type:").fill(GROUPS[name])
        page.get_by_role("button", name="Apply the plan").click()
        _done(page)
        assert _apart(lambda: committed(cluster, name)) == {0: 4}
        for link in ("Changes", "Audit log"):
            page.get_by_role("link", name=link, exact=True).click()
            page.get_by_role("heading", level=1, name=link).wait_for()
            look(link.split()[0])
        page.goto(f"{address}/clusters/main/repairs")
        look("repairs")
    assert [text for text in complaints if "status of 422" not in text] == []


def _done(page: Page) -> None:
    page.get_by_role("status").filter(has_text="Done.").wait_for()


def _apart(work: Callable[[], T]) -> T:
    """In a thread: this one has the browser's event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()
