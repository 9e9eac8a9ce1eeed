"""What a group fetched, from scrapes of a real KoP."""

from kelpie.evidence import read_evidence
from kelpie.examination import Examination
from tests.evidence import unpacked
from tests.web.watching import pages


def test_scrapes_tell_what_brokers_counted_to_a_group() -> None:
    """A group that fetched nothing has none, and its page says so."""
    with pages(Examination(evidence=read_evidence([unpacked("kop-3.2-scrapes")]))) as browser:
        counted = browser.get("/clusters/main/group.json?name=g9-00").json()["traffic"]
        page = browser.get("/clusters/main/group?name=g9-00").text
        quiet = browser.get("/clusters/main/group?name=g12-quiet").text
    assert counted == [{"topic": "t9", "how": "counted", "messages": 200, "bytes": 22484}]
    assert "The broker counted it to this group." in page
    assert "Nobody counted what this group fetched" in quiet
