"""Logs in a layout that nobody could guess, and that somebody describes."""

from pathlib import Path

import pytest

from kelpie.evidence import read_evidence
from kelpie.evidence.logs import read_log
from kelpie.evidence.logs.hints import MISFIT, Hints, parse_layout, zone_of
from kelpie.observations import EventKind

SHOP = (
    r"shop-*.log=(?P<day>\d\d)\.(?P<month>\d\d)\.(?P<year>\d{4}) "
    r"(?P<hour>\d\d)h(?P<minute>\d\d)m(?P<second>\d\d)(?:,(?P<fraction>\d+))?"
    r" ~ (?P<level>\w+) ~ (?P<logger>\S*) ~ (?P<message>.*)"
)
LINES = [
    "15.11.2026 20h56m40,123 ~ info ~ o.a.k.c.c.i.ConsumerCoordinator ~ [Consumer clientId=c, groupId=g] "
    "Revoke previously assigned partitions t-1",
    "15.11.2026 20h57m00 ~ error ~ shop.Worker ~ it went wrong",
    "org.apache.kafka.clients.consumer.CommitFailedException: Offset commit cannot be completed",
    "\tat shop.Worker.run(Worker.java:7)",
]
AT = 1_794_776_200_123


def test_lines_that_fit_are_heads_and_the_others_follow_them() -> None:
    """Their text is told as it stands there."""
    reading = read_log(LINES, "clients/shop-7.log", Hints(layouts=(parse_layout(SHOP),)))
    revoked, failed = reading.observations.events
    assert (revoked.kind, revoked.at, revoked.group) == (EventKind.REVOKED, AT, "g")
    assert revoked.text == LINES[0]
    assert failed.at == AT + 19_877
    assert "CommitFailedException" in failed.text
    assert (reading.lines, reading.heads) == (4, 2)


def test_a_time_of_a_usual_form_and_a_zone() -> None:
    hints = Hints(zone_of("Europe/Vienna"), (parse_layout(r"*=<(?P<time>[^>]*)> (?P<message>.*)"),))
    line = (
        "<2026-11-15 21:56:40,123> [Consumer clientId=c, groupId=g] Revoke previously assigned partitions t-1"
    )
    (event,) = read_log([line], "a.log", hints).observations.events
    assert event.at == AT


def test_only_files_that_are_named_have_it(tmp_path: Path) -> None:
    """Others are read as ever; one that it does not fit is told."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "shop-1.log").write_text("\n".join(LINES))
    (tmp_path / "logs" / "shop-2.log").write_text("2026-11-15 20:56:40,123 INFO nothing of the kind\n")
    usual = LINES[0].replace("groupId=g", "groupId=h").partition(" ~ o.a.k")[2].partition(" ~ ")[2]
    (tmp_path / "logs" / "other.log").write_text(f"2026-11-15 20:56:40,123 INFO {usual}\n")
    found = read_evidence([tmp_path], hints=Hints(layouts=(parse_layout(SHOP),)))
    assert {it.group for it in found.events} == {"g", "h"}
    assert [(it.name, it.reason) for it in found.unasked] == [("logs/shop-2.log", MISFIT)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(?P<message>.*)", "is no layout: write it as FILES=PATTERN"),
        ("=.*", "is no layout: write it as FILES=PATTERN"),
        ("*.log=(?P<message>.*", "The layout of *.log is no regular expression"),
        ("*.log=(?P<time>.*)", "has no (?P<message>…)"),
        ("*.log=(?P<text>.*)(?P<message>.*)", "names text; it may name time"),
        ("*.log=(?P<day>.*)(?P<message>.*)", "must name either time, or all of year, month, day"),
    ],
)
def test_bad_layouts_are_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ValueError, match="layout") as caught:
        parse_layout(text)
    assert words in str(caught.value)
