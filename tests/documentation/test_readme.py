"""README.md: what it counts is what there is."""

import re
from pathlib import Path

from kelpie.doctor.rules import rules
from kelpie.real.releases import RELEASES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_number_of_rules_is_right() -> None:
    """A new rule changes it."""
    assert re.findall(r"\b(\d+) rules, each with a page", README) == [str(len(rules()))]


def test_the_releases_are_those_that_can_be_started() -> None:
    """Of the sentence about tests, and of the one about `kelpie real`."""
    for sentence in (r"run against real Kafka ([\d., and]+?) and real", r"Versions: ([\d., ]+?), one broker"):
        (told,) = re.findall(sentence, README)
        assert set(re.findall(r"\d+(?:\.\d+)+", told)) == set(RELEASES)


def test_the_picture_is_there() -> None:
    """It is made by the project itself: `make pictures`."""
    (picture,) = re.findall(r"!\[[^\]]+\]\((docs/[\w-]+\.png)\)", README)
    assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")
