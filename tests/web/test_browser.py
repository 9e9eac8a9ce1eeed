"""Every page in a real browser: within its policy, for everybody, on a phone, and without scripts."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from kelpie.evidence import read_evidence
from kelpie.examination import Examination
from kelpie.observations import Committed, Listing, Observations
from kelpie.web.application import application
from kelpie.web.watch import Watch
from tests.doctor.building import NOW, a_broker, an_offsets_topic
from tests.evidence import unpacked
from tests.web.browsing import assert_usable, served, window
from tests.web.watching import looked

HOSTILE = ["<script>document.title='owned'</script>", "a" * 240, "订单-" * 30, "\u202eevil"]
ADDRESSES = [
    "/",
    "/clusters/outage/overview",
    "/clusters/outage/groups",
    "/clusters/outage/group?name=checkout-53",
    "/clusters/outage/incidents",
    "/clusters/outage/topics",
    "/clusters/outage/topic?name=orders",
    "/clusters/outage/brokers",
    "/clusters/outage/offsets-topic",
    "/clusters/hostile/overview",
    "/clusters/hostile/groups",
    "/clusters/hostile/topics",
    "/clusters/dead/overview",
    "/clusters/dead/incidents",
    "/clusters/dead/offsets-topic",
    "/rules",
    "/rule?code=KLP101",
]


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Pages of a recorded outage, of names that mean harm, and of a cluster of which nothing is known."""
    evidence = {
        "outage": read_evidence([unpacked("kafka-4.3.1-coordinator-outage")]),
        "hostile": Observations(
            brokers=[a_broker(1)],
            partitions=an_offsets_topic(brokers=[1], replicas=1),
            listings=[Listing(1, tuple(HOSTILE), at=NOW, source="broker 1")],
            committed=[Committed(name, name, 0, 5, at=NOW, source="broker 1") for name in HOSTILE],
        ),
        "dead": Observations(),
    }
    watches = [Watch(name, Examination(evidence=rows), 3600) for name, rows in evidence.items()]
    for watch in watches:
        watch.__enter__()
        looked(watch)
    with served(application(watches, ["127.0.0.1"])) as address:
        yield address
    for watch in watches:
        watch.__exit__()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_everybody_can_use_every_page(browser: Browser, site: str, width: int, scheme: str) -> None:
    """axe finds nothing, the policy is not violated, and nothing is wider than the window."""
    with window(browser, viewport={"width": width, "height": 800}, color_scheme=scheme) as page:
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        for address in ADDRESSES:
            page.goto(site + address)
            assert_usable(page)
            assert page.title() != "owned"
        assert complaints == []


def test_axe_would_find_something(browser: Browser) -> None:
    with window(browser) as page:
        page.set_content("<html><body><img src='x'><button></button></body></html>")
        assert Axe().run(page).response["violations"]


def test_without_javascript_groups_are_found_and_opened(browser: Browser, site: str) -> None:
    with window(browser, java_script_enabled=False) as page:
        page.goto(f"{site}/clusters/outage/overview")
        assert page.get_by_role("status").inner_text().startswith("CRITICAL: 8 of 14 groups")
        page.get_by_role("link", name="Groups", exact=True).click()
        page.get_by_role("searchbox").fill("checkout-53")
        page.get_by_role("button", name="Show").click()
        page.get_by_role("rowheader").get_by_role("link").click()
        assert page.get_by_role("heading", level=1).inner_text() == "checkout-53"
        assert page.locator(".journey .failed").count() == 2


def test_a_keyboard_reaches_the_content_first(browser: Browser, site: str) -> None:
    with window(browser) as page:
        page.goto(f"{site}/clusters/outage/overview")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "To the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
