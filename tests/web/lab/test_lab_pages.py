"""`kelpie lab up --serve --groups`: faults by buttons, and the groups that they stop turn red."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kelpie.cli.command import CommandError
from kelpie.cli.lab_pages import bound, lab_pages
from kelpie.lab.cluster import Cluster
from kelpie.lab.lab_errors import LabError
from kelpie.lab.population import Population, group_names
from tests.browsers import a_browser
from tests.web.browsing import assert_usable, window

LIMIT_S = 120.0
GROUPS = 5
CHINESE = "zh-CN"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address: three brokers, five groups with consumers, one replica of the offsets topic."""
    address: list[str] = []
    up, end = threading.Event(), threading.Event()

    async def run() -> None:
        config = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.replication.factor": 1}
        async with (
            Cluster(3, offsets_partitions=6, config=config) as cluster,
            Population(cluster, GROUPS),
            lab_pages(cluster, bound("127.0.0.1:0")) as pages,
        ):
            address.append(pages.removesuffix("/lab"))
            up.set()
            await asyncio.to_thread(end.wait)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KELPIE_STATE", str(tmp_path_factory.mktemp("state")))
        thread = threading.Thread(target=lambda: asyncio.run(run()))
        thread.start()
        assert up.wait(LIMIT_S)
        yield address[0]
        end.set()
        thread.join(LIMIT_S)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def browser(lab: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=lab, timeout=60) as client:
        yield client


def state_when(browser: httpx2.Client, condition: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    deadline = time.monotonic() + LIMIT_S
    while True:
        data: dict[str, Any] = browser.get("/lab.json").json()
        if condition(data):
            return data
        assert time.monotonic() < deadline, data
        time.sleep(0.1)


def press(browser: httpx2.Client, query: str, language: str = "en", **fields: str) -> httpx2.Response:
    token = re.search(r'name="csrftoken" value="([^"]+)"', browser.get("/lab").text)
    assert token is not None
    data = {"csrftoken": token[1], **fields}
    return browser.post(f"/lab?{query}", data=data, headers={"accept-language": language})


def assert_chinese(browser: httpx2.Client, answer: httpx2.Response | None = None) -> None:
    """No fault and no refusal is left in English; without an answer, the page as it is now."""
    text = (answer or browser.get("/lab", headers={"accept-language": CHINESE})).text
    assert '<html lang="zh-Hans">' in text
    assert re.findall(r'<span lang="en">([^<]*)', text) == []


def test_a_killed_broker_turns_its_groups_red_and_a_started_one_back(browser: httpx2.Client) -> None:
    """The offsets topic has one replica: groups of the dead brokers have no coordinator, others go on."""
    names = group_names(GROUPS)
    state_when(browser, lambda data: {row["group"] for row in data["groups"]} == set(names))
    for node in (1, 2):
        assert press(browser, f"do=kill&node={node}").status_code == 303
    data = state_when(browser, lambda data: any(row["finding"] == "KLP101" for row in data["groups"]))
    assert not all(row["finding"] == "KLP101" for row in data["groups"])
    assert [(each["broker"], each["alive"]) for each in data["brokers"]] == [
        (1, False),
        (2, False),
        (3, True),
    ]
    assert {fault["what"] for fault in data["faults"]} == {"broker 1 killed", "broker 2 killed"}
    assert "KLP101" in browser.get("/lab").text
    for node in (1, 2):
        assert press(browser, f"do=start&node={node}").status_code == 303
    data = state_when(browser, lambda data: all(row["finding"] != "KLP101" for row in data["groups"]))
    assert data["faults"] == []


@pytest.mark.parametrize("act", ["isolate", "wall-off", "stall-broker", "freeze", "lag"])
def test_faults_of_a_broker_are_caused_and_lifted(browser: httpx2.Client, act: str) -> None:
    assert press(browser, f"do={act}&node=3").status_code == 303
    faults = browser.get("/lab.json").json()["faults"]
    assert len(faults) == 1
    assert_chinese(browser)
    assert press(browser, f"do=lift&fault={faults[0]['id']}").status_code == 303
    assert browser.get("/lab.json").json()["faults"] == []


def test_faults_of_groups_and_partitions_are_caused(browser: httpx2.Client) -> None:
    assert press(browser, "do=leaderless", partition="orders-0").status_code == 303
    assert press(browser, "do=stall", group="billing").status_code == 303
    assert press(browser, "do=slow-load").status_code == 303
    assert press(browser, "do=expire-offsets", group="nobody <b>").status_code == 303
    faults = browser.get("/lab.json").json()["faults"]
    assert len(faults) == 3
    assert_chinese(browser)
    for fault in faults:
        press(browser, f"do=lift&fault={fault['id']}")


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("do=kill&node=9", {}),
        ("do=kill&node=x", {}),
        ("do=start&node=3", {}),
        ("do=leaderless", {"partition": "<b>"}),
        ("do=leaderless", {"partition": "nowhere-0"}),
        ("do=stall", {}),
        ("do=explode", {}),
    ],
)
def test_what_cannot_be_is_said(browser: httpx2.Client, query: str, fields: dict[str, str]) -> None:
    answer = press(browser, query, **fields)
    assert answer.status_code == 409
    assert 'role="alert"' in answer.text
    assert "<b>" not in answer.text
    assert_chinese(browser, press(browser, query, CHINESE, **fields))


def test_nothing_is_caused_without_the_token_or_by_get(browser: httpx2.Client, lab: str) -> None:
    assert browser.post("/lab?do=kill&node=3", data={"csrftoken": "x"}).status_code == 403
    assert httpx2.post(f"{lab}/lab?do=kill&node=3", data={"a": "b"}).status_code == 403
    assert browser.get("/lab?do=kill&node=3").status_code == 200
    assert browser.get("/lab.json").json()["faults"] == []
    assert browser.get("/lab", headers={"host": "evil.example"}).status_code == 400


def test_groups_of_the_lab_can_be_repaired(browser: httpx2.Client) -> None:
    text = browser.get("/clusters/lab/repairs?group=billing").text
    assert "Show the plan" in text
    assert "/logout" not in text


def test_pages_of_the_lab_are_for_this_machine(tmp_path: Path) -> None:
    """There is no login."""
    with pytest.raises(CommandError, match="only loopback"):
        bound("0.0.0.0:8088")
    with bound("127.0.0.1:0") as taken, pytest.raises(CommandError, match="cannot listen"):
        bound(f"127.0.0.1:{taken.getsockname()[1]}")


def test_a_population_has_limits() -> None:
    assert len(set(group_names(50))) == 50
    for number in (0, 201):
        with pytest.raises(LabError):
            Population(Cluster(1), number)


@pytest.mark.parametrize("has_javascript", [True, False])
def test_buttons_work_in_a_real_browser(lab: str, *, has_javascript: bool) -> None:
    """For everybody, on a phone, and without scripts."""
    viewport = {"width": 360, "height": 800}
    with (
        a_browser() as opened,
        window(opened, java_script_enabled=has_javascript, viewport=viewport) as page,
    ):
        page.goto(f"{lab}/lab")
        page.get_by_role("button", name="Stop following: Broker 3").click()
        page.get_by_text("broker 3 does not follow anything").wait_for()
        if has_javascript:
            assert_usable(page)
        page.get_by_role("button", name="Lift fault").click()
        page.get_by_text("None.").wait_for()
