"""Sentences of the doctor in Chinese: made of its English text, whatever names are in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from kelpie.web.translation import catalogue_of, pieces_of
from kelpie.web.translation.notation import Hole, parse
from kelpie.web.translation.pieces import Kind
from kelpie.web.translation.translator import Translator
from tests.web.translation.leftover import CHINESE, chinese

NAMES = st.from_regex(r"[A-Z]{2}[A-Za-z0-9_.]{0,20}-[0-9]{1,3}", fullmatch=True)


@pytest.mark.parametrize(
    ("english", "expected"),
    [
        (
            "Group billing has no coordinator: __consumer_offsets-43 has no leader; its replicas are on "
            "brokers 2 and 3.",
            "消费组 billing 没有协调器：__consumer_offsets-43 没有 leader；它的副本在 broker 2 和 3。",
        ),
        (
            "CRITICAL: 2 of 14 groups have no coordinator (brokers 2 and 3 are dead).",
            "严重：14 个消费组中的 2 个没有协调器（broker 2 和 3 已宕机）。",
        ),
        (
            "2 of 3 brokers are dead: broker 1 (kafka-1:9092) and broker 2 (kafka-2:9092), for 9.49 min. 19 "
            "partitions have no leader. 4 partitions of orders have one replica in sync left.",
            "3 个 broker 中有 2 个宕机：broker 1 (kafka-1:9092) 和 broker 2 (kafka-2:9092)，"
            "已持续 9.49 分钟。19 个分区没有 leader。orders 的 4 个分区只剩一个同步副本。",
        ),
        (
            "If broker 1 (kafka-1:9092) goes, 9 groups lose their coordinator (a-1, a-2 and 7 more): it has "
            "the only replica in sync of 5 partitions of __consumer_offsets; they have one replica each, by "
            "configuration.",
            "如果 broker 1 (kafka-1:9092) 宕机，9 个消费组失去协调器（a-1、a-2 和另外 7 个）："
            "__consumer_offsets 的 5 个分区只有它上面的副本同步；按配置每个分区只有一个副本。",
        ),
        ("KLP318 lag-grows", "KLP318 积压增长"),
        ("orders-0: the log begins at 0 and ends at 500", "orders-0：日志起始于 0，结束于 500"),
    ],
)
def test_a_sentence_of_pieces_is_said_in_one_language(english: str, expected: str) -> None:
    assert chinese(english) == expected


@pytest.mark.parametrize(
    "line",
    [
        "[2026-11-17 17:02:27,154] INFO [GroupCoordinator id=1] Preparing to rebalance group g (reason: x",
        "%4|1794934949.196|MAXPOLL|app-0#consumer-1| [thrd:main]: Application maximum poll interval exceeded",
        "Number of alive brokers '1' does not meet the required replication factor '3' for the offsets topic",
    ],
)
def test_a_line_of_a_log_is_shown_as_it_is(line: str) -> None:
    """It is evidence: half of it in Chinese would be neither."""
    assert [(piece.text, piece.is_english) for piece in pieces_of(line, CHINESE)] == [(line, True)]


def test_what_is_not_understood_stays_english_within_its_sentence() -> None:
    """The rest of a remark is not lost because a broker's reason has no translation."""
    pieces = pieces_of(
        "Each consumer that gets orders-0 meets the same record: Bad magic byte here.", CHINESE
    )
    assert [piece.text for piece in pieces if piece.is_english] == ["Bad magic byte here"]
    assert pieces[0].kind is not Kind.ENGLISH


def test_a_weak_template_frames_nothing_that_is_not_understood() -> None:
    """A group and anything behind it would fit any sentence, and make half of it Chinese."""
    (piece,) = pieces_of("Group x does something that nobody has ever described", CHINESE)
    assert piece.is_english


def test_holes_may_change_places_and_choices_have_words_of_their_own() -> None:
    said = Translator({"{0} is {a:behind|ahead of} {1}": "{1}比{0}{a:快|慢}"})
    assert "".join(piece.text for piece in said.pieces("a-1 is ahead of b-2")) == "b-2 比 a-1 慢"


TEMPLATES = sorted(catalogue_of("doctor", CHINESE))


@given(st.sampled_from(TEMPLATES), st.lists(NAMES, min_size=9, max_size=9))
def test_names_are_shown_as_they_are(template: str, names: list[str]) -> None:
    """Whatever sentence they are in: no sign of a name is lost or changed."""
    parts = parse(template)
    filled = [
        part
        if isinstance(part, str)
        else (str(part.number + 2) if part.is_numeric else names[part.number])
        if isinstance(part, Hole)
        else part.options[0]
        for part in parts
    ]
    shown = chinese("".join(filled))
    for part in parts:
        if isinstance(part, Hole) and not part.is_numeric:
            assert names[part.number] in shown


PARTS = (*" .,:;()=", " and ", " of ", "Group ", " has no leader", "1", "x", "中", "\n")
HOSTILE = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


@given(st.sampled_from(TEMPLATES), HOSTILE, HOSTILE)
def test_no_name_breaks_a_page(template: str, one: str, other: str) -> None:
    """A name may look like any template: it is shown, and that is all."""
    text = template.replace("{0}", one).replace("{1}", other)
    pieces = pieces_of(text, CHINESE)
    assert "".join(piece.text for piece in pieces) or not text.strip()
    assert "<script>" not in "".join(escape(piece.text) for piece in pieces_of(f"{text}<script>", CHINESE))


def test_work_is_bounded_for_the_worst_names() -> None:
    """Fixed parts a hundred times in one name: it is given up, and the text shown in English."""
    for name in (" and , of is dead: . " * 90, "1 of 2 groups " * 130, "a b, c and d: e; f (g). " * 80):
        text = f"Group {name} has no coordinator: x-1 has no leader; its replicas are on brokers 2 and 3."
        assert pieces_of(text, CHINESE)[0].is_english
