"""Charts as SVG: where lines are, what is left out, and that no name gets out of its element."""

import json
from xml.etree.ElementTree import Element, fromstring

from kelpie.web.drawing.chart import DURATION, HEIGHT, WIDTH, Chart, Line, Mark, draw
from kelpie.web.drawing.scale import Frame

FRAME = Frame(0, 100_000)


def drawn(chart: Chart, frame: Frame = FRAME) -> Element:
    return fromstring(draw(chart, frame, lambda ms: f"{ms / 1000:g} s", "what it shows"))


def path(root: Element) -> str:
    return root.find("path").get("d")  # type: ignore[union-attr, return-value]


def points(root: Element) -> list[list[float]]:
    return json.loads(root.find("path").get("data-points"))  # type: ignore[union-attr, arg-type, no-any-return]


def test_a_line_goes_from_value_to_value() -> None:
    root = drawn(Chart("Lag", [Line("Lag", [0, 50_000, 100_000], [0, 100, 50])]))
    assert path(root) == "M56 154L303 10L550 82"
    assert root.get("viewBox") == f"0 0 {WIDTH} {HEIGHT}"
    assert root.get("role") == "img"
    assert root.get("aria-label") == "what it shows"


def test_steps_hold_until_the_next_value_and_to_the_end() -> None:
    root = drawn(Chart("Members", [Line("", [0, 50_000], [1, 2])], steps=True))
    assert path(root) == "M56 82H303V10H550"


def test_what_is_not_known_is_a_gap() -> None:
    root = drawn(Chart("Lag", [Line("", [0, 10_000, 20_000, 30_000, 40_000], [1, 1, None, 1, float("nan")])]))
    assert path(root).count("M") == 2
    assert len(root.findall("circle")) == 1, "a single value is a point"


def test_a_line_is_cut_where_the_frame_begins_and_ends() -> None:
    root = drawn(Chart("Lag", [Line("", [0, 100_000], [0, 100])]), Frame(25_000, 75_000))
    assert points(root) == [[25_000, 25], [75_000, 75]]


def test_of_steps_that_began_before_the_frame_the_last_one_counts() -> None:
    root = drawn(Chart("Members", [Line("", [0, 10_000], [1, 3])], steps=True), Frame(50_000, 75_000))
    assert points(root) == [[50_000, 3]]


def test_of_many_values_every_peak_is_drawn_and_few_points_are() -> None:
    times = range(0, 100_000, 5)
    values = [float(at % 7) for at in times]
    values[7_777] = 1_000_000
    shown = points(drawn(Chart("Lag", [Line("", times, values)])))
    assert len(shown) <= 4 * 241
    assert [7_777 * 5, 1_000_000] in shown
    assert shown == sorted(shown)


def test_nothing_at_all_is_an_empty_chart() -> None:
    assert path(drawn(Chart("Lag", [Line("", [], [])]))) == ""


def test_marks_stand_where_something_happened() -> None:
    root = drawn(Chart("Lag", [Line("", [0], [1])], marks=[Mark(50_000, "a"), Mark(500_000, "later")]))
    marks = [each for each in root.findall("line") if each.get("class") == "mark"]
    assert [(each.get("x1"), each.get("data-text")) for each in marks] == [("303", "a")]


def test_durations_have_their_own_ticks() -> None:
    root = drawn(Chart("Lag", [Line("", [0], [90_000])], DURATION))
    said = [each.text for each in root.findall("text") if each.get("class") == "of-value"]
    assert said == ["0 s", "30 s", "60 s", "90 s"]


def test_a_hostile_name_stays_a_name() -> None:
    evil = '"><script>alert(1)</script>\u202e'
    text = draw(Chart("x", [Line(evil, [0], [1])], marks=[Mark(0, evil)]), FRAME, str, evil)
    assert "<script" not in text
    assert "style=" not in text
    assert "\u202e" not in str(fromstring(text).get("aria-label"))
