"""Pictures other than charts: who stops with which broker, and what lasted from when to when."""

from xml.etree.ElementTree import Element, fromstring

from kelpie.doctor.broker_loss import BrokerLoss
from kelpie.web.drawing.blast_radius import blast_radius
from kelpie.web.drawing.scale import Frame
from kelpie.web.drawing.time_line import Bar, time_line

FRAME = Frame(0, 708_000)


def a_loss(node: int, *groups: str) -> BrokerLoss:
    return BrokerLoss(node, groups, (), ())


def radius(*losses: BrokerLoss) -> Element:
    drawn = blast_radius(losses, lambda node: f"broker {node}", lambda count: f"and {count} more")
    assert drawn is not None
    return fromstring(drawn)


def said(root: Element, kind: str) -> list[str | None]:
    return [each.text for each in root.findall("text") if kind in str(each.get("class")).split()]


def test_each_broker_is_joined_to_the_groups_that_stop_with_it() -> None:
    """A group that stops with either of two brokers is drawn once, with two lines."""
    root = radius(a_loss(1, "a", "b"), a_loss(2, "b"), a_loss(3))
    assert said(root, "of-box") == ["broker 1", "broker 2"]
    assert said(root, "of-end") == ["a", "b"]
    assert len(root.findall("path")) == 3


def test_nothing_is_drawn_if_no_group_stops() -> None:
    assert blast_radius([a_loss(1)], str, str) is None


def test_ten_thousand_groups_stay_a_small_picture() -> None:
    """Every broker has a few lines, and one for all others."""
    losses = [a_loss(node, *(f"group-{node}-{each}" for each in range(100))) for node in range(100)]
    root = radius(*losses)
    assert len(root.findall("path")) < 50
    assert "and 99 more" in said(root, "more")


def test_long_and_hostile_names_are_cut_and_escaped() -> None:
    root = radius(a_loss(1, "<script>" + "x" * 200))
    [name] = said(root, "of-end")
    assert name is not None
    assert len(name) == 40


def bars(root: Element) -> list[tuple[str | None, str | None, str | None]]:
    return [(each.get("class"), each.get("x"), each.get("width")) for each in root.findall("rect")]


def test_bars_lie_where_their_time_is() -> None:
    root = fromstring(
        time_line(
            [
                Bar("over", "notice", 354_000, 531_000),
                Bar("goes on", "critical", 354_000, None),
                Bar("began before", "warning", None, 100_000),
                Bar("a moment", "warning", 0, 0),
                Bar("just now", "warning", 708_000, None),
            ],
            FRAME,
        )
    )
    assert bars(root) == [
        ("bar notice", "360", "177"),
        ("bar critical open", "360", "354"),
        ("bar warning", "6", "100"),
        ("bar warning", "6", "3"),
        ("bar warning open", "711", "3"),
    ]
    assert said(root, "of-bar") == ["over", "goes on", "began before", "a moment", "just now"]
