"""Widths on a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from kelpie.model.cells import cells, fill, padded, shortened, wrap

_TEXT = st.text(st.sampled_from("ab-订é\u0301 \n\xa0"), max_size=60)


def test_wide_letters_take_two_cells_and_marks_none() -> None:
    """As terminals show them."""
    assert [cells(text) for text in ("", "abc", "订单", "e\u0301", "ä", "한글", "🐕")] == [
        0,
        3,
        4,
        1,
        1,
        4,
        2,
    ]


def test_cells_are_filled_and_cut_by_cells() -> None:
    """A column of CJK names stands straight."""
    assert padded("订单", 6) == "订单  "
    assert shortened("订单-服务", 6) == "订单-…"
    assert shortened("abc", 3) == "abc"


def test_text_is_wrapped_by_cells() -> None:
    """80 wide letters are 160 columns."""
    assert wrap("组 订单服务 支付服务 b", 9, "- ", "  ") == [
        "- 组",
        "  订单服务",
        "  支付服务",
        "  b",
    ]
    assert wrap("订单服务", 5, breaks_words=True) == ["订单", "服务"]
    assert wrap("to 订单服务", 6, breaks_words=True) == ["to 订", "单服务"]
    assert fill("", 10, "- ") == ""


def test_words_that_belong_together_stay_so() -> None:
    """A no-break space is no place to wrap, nor is a hyphen: names are copied from the screen."""
    assert wrap("took 3\xa0s kafka-consumer-groups", 9) == ["took 3\xa0s", "kafka-consumer-groups"]


@given(_TEXT, st.integers(4, 30))
def test_no_line_is_too_wide_and_nothing_is_lost(text: str, width: int) -> None:
    """Whatever the text."""
    lines = wrap(text, width, "  ", " ", breaks_words=True)
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines).split(" ")) == "".join(text.split("\n")).replace(" ", "")
    assert max([cells(line) for line in shortened(text, width).split("\n")], default=0) <= width
