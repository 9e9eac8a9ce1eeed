"""Pages of a recorded outage: what they say is what the doctor says; and of names that mean harm."""

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from kelpie.evidence import read_evidence
from kelpie.examination import Examination
from kelpie.observations import Committed, Listing, Observations
from tests.doctor.building import NOW, a_broker, an_offsets_topic
from tests.evidence import unpacked
from tests.web.watching import HOST, client, pages

CLUSTER = "/clusters/main"
PAGES = [
    "",
    f"{CLUSTER}/overview",
    f"{CLUSTER}/groups",
    f"{CLUSTER}/group?name=checkout-53",
    f"{CLUSTER}/brokers",
    f"{CLUSTER}/topics",
    f"{CLUSTER}/topic?name=orders",
    f"{CLUSTER}/incidents",
    f"{CLUSTER}/offsets-topic",
    "/rules",
    "/rule?code=KLP101",
]
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a/b?c=d&e#f.json",
    "..",
    "%2e%2e/%00",
    "{{ 7 * 7 }}",
    "\u202eevil\x1b[2J",
    "订单",
]


@pytest.fixture(scope="module")
def outage() -> Iterator[TestClient]:
    evidence = read_evidence([unpacked("kafka-4.3.1-coordinator-outage")])
    with pages(Examination(evidence=evidence)) as browser:
        yield browser


@pytest.fixture(scope="module")
def hostile() -> Iterator[TestClient]:
    rows = Observations(
        brokers=[a_broker(node) for node in (1, 2, 3)],
        partitions=an_offsets_topic(),
        listings=[Listing(1, tuple(HOSTILE), at=NOW, source="broker 1")],
        committed=[Committed(name, f"t-{name}", 0, 5, at=NOW, source="broker 1") for name in HOSTILE],
    )
    with pages(Examination(evidence=rows)) as browser:
        yield browser


@pytest.mark.parametrize("path", PAGES)
def test_every_page_has_a_twin_in_json(outage: TestClient, path: str) -> None:
    page = outage.get(path or "/")
    assert page.status_code == 200
    assert page.text.count("<h1>") == 1
    twin = re.search(r'<a href="([^"]+\.json[^"]*)">This page as JSON', page.text)
    assert twin is not None
    answer = outage.get(twin[1].replace("&amp;", "&"))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()


@pytest.mark.parametrize("path", ["/metrics", "/nowhere", "/static/kelpie.css", *PAGES])
def test_no_answer_lets_a_browser_run_what_a_name_says(outage: TestClient, path: str) -> None:
    headers = outage.get(path or "/").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", PAGES)
def test_no_page_needs_a_script_or_a_style_in_itself(outage: TestClient, path: str) -> None:
    text = outage.get(path or "/").text
    assert not re.search(r"<script(?! src=\"/static/(?:kelpie|chart)\.js\" defer>)", text)
    assert not re.search(r"<style|\sstyle=|\son\w+=", text)


def test_the_overview_says_what_the_doctor_says(outage: TestClient) -> None:
    """The verdict, the cause before its consequences, and exactly the groups that were hit."""
    text = outage.get(f"{CLUSTER}/overview").text
    data = outage.get(f"{CLUSTER}/overview.json").json()
    assert data["summary"] == "CRITICAL: 8 of 14 groups have no coordinator (brokers 2 and 3 are dead)."
    assert data["summary"] in text
    assert text.index("broker-dead") < text.index("offsets-partition-leaderless")
    assert data["broker_losses"][0]["broker"] == 1
    hit = {each["group"] for each in data["findings"] if each["code"] == "KLP101"}
    assert not hit & set(data["broker_losses"][0]["groups_that_stop"]), "they are stopped already"


def test_groups_are_filtered_and_sorted_as_the_address_says(outage: TestClient) -> None:
    def names(query: str) -> list[str]:
        rows = outage.get(f"{CLUSTER}/groups.json{query}").json()["groups"]
        return [row["group"] for row in rows]

    assert len(names("")) == 14
    assert names("?sort=name") == sorted(names(""))
    assert set(names("?severity=critical")) < set(names(""))
    assert names("?pattern=checkout-1*&sort=name") == [
        name for name in sorted(names("")) if name.startswith("checkout-1")
    ]
    assert names("?pattern=OUT-53") == ["checkout-53"]
    assert names("?first=13&sort=name") == sorted(names(""))[13:]
    assert names("?sort=bogus&severity=bogus&first=-1") == names("")


def test_a_group_shows_where_its_way_ends(outage: TestClient) -> None:
    data = outage.get(f"{CLUSTER}/group.json?name=checkout-53").json()
    assert [step["passage"] for step in data["journey"]][:2] == ["failed", "failed"]
    assert "KLP101" in {finding["code"] for finding in data["findings"]}
    assert len(data["partitions"]) == 6
    text = outage.get(f"{CLUSTER}/group?name=checkout-53").text
    assert "has no coordinator" in text
    assert "kelpie rehome" in text


def test_what_is_not_there_is_said_so(outage: TestClient) -> None:
    for path in ("/nowhere", "/clusters/other/overview", f"{CLUSTER}/group?name=nobody", "/rule?code=KLP999"):
        page = outage.get(path)
        assert page.status_code == 404
        assert "<h1>" in page.text
    twin = outage.get(f"{CLUSTER}/group.json?name=nobody")
    assert twin.status_code == 404
    assert twin.json() == {"error": "No group of this name was seen in the last look."}


def test_another_host_name_is_refused(outage: TestClient) -> None:
    """A page elsewhere whose name leads to this machine cannot read along."""
    assert outage.get("/", headers={"host": "evil.example"}).status_code == 400
    assert outage.get("/", headers={"host": HOST}).status_code == 200


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_shown_and_never_obeyed(hostile: TestClient, name: str) -> None:
    listed = hostile.get(f"{CLUSTER}/groups").text
    page = hostile.get(f"{CLUSTER}/group?name={quote(name, safe='')}")
    assert page.status_code == 200
    for text in (listed, page.text):
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert ">49<" not in text
    twin = hostile.get(f"{CLUSTER}/group.json?name={quote(name, safe='')}")
    assert twin.json()["group"] == name
    link = re.search(rf'href="([^"]*name={re.escape(quote(name, safe=""))})"', listed.replace("+", "%20"))
    assert link is not None, "the list links to the group"


def test_a_cluster_that_nobody_has_looked_at_yet_is_waited_for() -> None:
    from kelpie.web.watch import Watch

    watch = Watch("main", Examination(evidence=Observations()), 60)
    with client([watch]) as browser:
        assert browser.get(f"{CLUSTER}/overview").status_code == 503
        assert "under way" in browser.get(f"{CLUSTER}/overview").text
        assert browser.get("/").status_code == 200
