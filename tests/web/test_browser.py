"""Every page in a real browser: within its policy, for everybody, on a phone, and without scripts."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, ViewportSize

from kelpie.evidence import read_evidence
from kelpie.examination import Examination
from kelpie.observations import Committed, Listing, Observations
from kelpie.web.application import application
from kelpie.web.watch import Watch
from tests.doctor.building import MINUTE, NOW, a_broker, an_offsets_topic
from tests.evidence import unpacked
from tests.web.browsing import assert_narrow, assert_usable, served, violations, window
from tests.web.looking import a_watch, many_groups
from tests.web.test_incidents import outage_from_look_3_to_5
from tests.web.watching import looked

HOSTILE = ["<script>document.title='owned'</script>", "a" * 240, "订单-" * 30, "\u202eevil"]
ADDRESSES = [
    "/",
    "/clusters/live/overview",
    "/clusters/live/group?name=billing",
    "/clusters/live/incidents",
    "/clusters/outage/overview",
    "/clusters/outage/groups",
    "/clusters/outage/group?name=checkout-53",
    "/clusters/outage/incidents",
    "/clusters/outage/topics",
    "/clusters/outage/topic?name=orders",
    "/clusters/outage/brokers",
    "/clusters/outage/offsets-topic",
    "/clusters/zookeeper/overview",
    "/clusters/zookeeper/group?name=orders-b-stuck",
    "/rules",
    "/rule?code=KLP101",
]
STRANGE = [
    f"/clusters/live/overview?at={NOW - 5 * MINUTE}",
    "/clusters/hostile/overview",
    "/clusters/hostile/groups",
    "/clusters/hostile/topics",
    f"/clusters/hostile/group?{urlencode({'name': HOSTILE[0]})}",
    "/clusters/dead/overview",
    "/clusters/dead/incidents",
    "/clusters/dead/offsets-topic",
    "/clusters/large/groups?sort=lag&first=9950",
]
"""Of the past, of hostile names, of nothing, of ten thousand groups: on a phone."""
PHONE, SCREEN = ViewportSize(width=360, height=800), ViewportSize(width=1280, height=800)
LARGE = [f"/clusters/large/{page}" for page in ("overview", "groups", "topics", "offsets-topic")]


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Pages of a recorded outage, of groups that ZooKeeper keeps, of names that mean harm, and of a cluster
    of which nothing is known.
    """
    evidence = {
        "outage": read_evidence([unpacked("kafka-4.3.1-coordinator-outage")]),
        "zookeeper": read_evidence([unpacked("kafka-0.8.2.2-rebalance-failure")]),
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
    large = a_watch(name="large")
    large.latest = many_groups(10_000, NOW)
    watches += [a_watch(*outage_from_look_3_to_5(), name="live"), large]
    with served(application(watches, ["127.0.0.1"])) as address:
        yield address
    for watch in watches[:-2]:
        watch.__exit__()


def test_everybody_can_use_every_page(browser: Browser, site: str) -> None:
    """axe finds nothing, the policy is not violated, and nothing is wider than the window: on a phone in the
    dark, and on a wide and light screen.
    """
    with window(browser) as page, no_complaints(page):
        for address in [*ADDRESSES, *STRANGE]:
            show(page, PHONE, "dark")
            page.goto(site + address)
            assert_usable(page)
            assert page.title() != "owned"
            if address in ADDRESSES:
                show(page, SCREEN, "light")
                assert_usable(page)


@pytest.mark.long
@pytest.mark.parametrize("has_scripts", [True, False])
@pytest.mark.parametrize("language", ["en", "zh-Hans"])
def test_everybody_can_use_every_page_in_every_way(
    browser: Browser, site: str, language: str, *, has_scripts: bool
) -> None:
    """Each page in both languages, with and without its scripts, in both colours."""
    with window(browser, locale=language) as page, no_complaints(page, has_scripts=has_scripts):
        if not has_scripts:
            page.route("**/*.js", lambda route: route.abort())
        for address in [*ADDRESSES, *STRANGE, *LARGE]:
            page.goto(site + address)
            assert page.locator("html").get_attribute("lang") == language
            show(page, PHONE, "light")
            assert_usable(page)
            show(page, SCREEN, "dark")
            assert_usable(page)


def show(page: Page, size: ViewportSize, scheme: Literal["dark", "light"]) -> None:
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=scheme)


@contextmanager
def no_complaints(page: Page, *, has_scripts: bool = True) -> Iterator[None]:
    """No script fails, and nothing violates the policy; a script that was held back is no complaint."""
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield
    assert [text for text in complaints if has_scripts or "ERR_FAILED" not in text] == []


def test_axe_would_find_something(browser: Browser) -> None:
    with window(browser) as page:
        page.set_content("<html><body><img src='x'><button></button></body></html>")
        for _ in range(2):
            assert {each["id"] for each in violations(page)} >= {"image-alt", "button-name"}


@pytest.mark.parametrize("has_scripts", [True, False])
def test_a_group_of_zookeeper_is_shown_like_any_other(
    browser: Browser, site: str, *, has_scripts: bool
) -> None:
    """From the overview to its page: what is wrong, what to change, and Kafka's own tool to check it."""
    with window(browser, java_script_enabled=has_scripts) as page:
        page.goto(f"{site}/clusters/zookeeper/overview")
        assert "give up rebalancing before a dead member" in page.inner_text("main")
        page.get_by_role("link", name="orders-b-stuck", exact=True).first.click()
        assert page.title().startswith("orders-b-stuck")
        text = page.inner_text("main")
        assert "KLP504" in text
        assert "rebalance.max.retries=65" in text
        assert "KLP501" in text
        assert "zookeeper-shell.sh" in page.content()


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


@pytest.mark.parametrize("address", LARGE)
def test_ten_thousand_groups_fit_on_a_phone(browser: Browser, site: str, address: str) -> None:
    """A page of them is small, whatever their number: axe judges the same tables with fewer rows."""
    with window(browser, viewport={"width": 360, "height": 800}) as page:
        answer = page.goto(site + address)
        assert answer is not None
        assert answer.status == 200
        assert len(answer.body()) < 300_000
        assert_narrow(page)


def test_ten_thousand_groups_are_found_by_name_and_turned_over(browser: Browser, site: str) -> None:
    """A page has a hundred of them; the server filters and sorts."""
    with window(browser, java_script_enabled=False) as page:
        page.goto(f"{site}/clusters/large/groups?sort=name")
        assert page.get_by_role("status").inner_text() == "10,000 groups of 10,000. Here are 1 to 100."
        assert page.locator("tbody tr").count() == 100
        page.get_by_role("link", name="Next").click()
        assert page.locator("tbody th").first.inner_text() == "group-00100"
        page.get_by_role("searchbox").fill("group-0999?")
        page.get_by_role("button", name="Show").click()
        assert page.locator("tbody tr").count() == 10


def test_a_pointer_over_a_chart_shows_its_value_and_dragging_chooses_the_time(
    browser: Browser, site: str
) -> None:
    with window(browser, viewport={"width": 1280, "height": 900}) as page:
        page.goto(f"{site}/clusters/live/group?name=billing")
        chart = page.locator("svg.chart").first
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        assert box is not None
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + box["width"] * 0.5, middle)
        assert " UTC · " in page.locator(".hover").first.inner_text()
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.8, middle)
        with page.expect_navigation():
            page.mouse.up()
        assert "from=" in page.url
        assert "to=" in page.url
        narrower = page.locator("svg.chart").first
        assert int(narrower.get_attribute("data-from") or 0) > NOW - 9 * MINUTE


def test_without_javascript_links_choose_the_time(browser: Browser, site: str) -> None:
    with window(browser, java_script_enabled=False) as page:
        page.goto(f"{site}/clusters/live/group?name=billing")
        page.get_by_role("link", name="Closer").click()
        assert page.locator("svg.chart").count() >= 3
        assert int(page.locator("svg.chart").first.get_attribute("data-from") or 0) > NOW - 9 * MINUTE
        page.get_by_role("link", name="Everything").click()
        assert page.locator("svg.chart").first.get_attribute("data-from") == str(NOW - 9 * MINUTE)


PICTURES = {
    "overview": ("/clusters/outage/overview", "light"),
    "group": ("/clusters/outage/group?name=checkout-344#history", "light"),
    "incidents": ("/clusters/outage/incidents", "dark"),
    "offsets-topic": ("/clusters/outage/offsets-topic", "light"),
}


@pytest.mark.skipif("KELPIE_PICTURES" not in os.environ, reason="make pictures takes them")
@pytest.mark.parametrize("name", PICTURES)
def test_pictures_of_the_documentation_are_taken(browser: Browser, site: str, name: str) -> None:
    address, scheme = PICTURES[name]
    folder = Path(os.environ["KELPIE_PICTURES"])
    with window(browser, viewport={"width": 1200, "height": 760}, color_scheme=scheme) as page:
        page.goto(site + address)
        page.screenshot(path=folder / f"serve-{name}.png")
    assert (folder / f"serve-{name}.png").stat().st_size > 10_000
