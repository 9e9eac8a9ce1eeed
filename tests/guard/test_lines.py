"""Bytes of a stream to lines."""

from hypothesis import given
from hypothesis import strategies as st

from kelpie.guard.lines import LineCutter


@given(st.binary(max_size=200), st.lists(st.integers(1, 20), max_size=20))
def test_lines_do_not_depend_on_how_the_bytes_arrive(data: bytes, sizes: list[int]) -> None:
    """A pipe gives what is there, in any pieces."""
    cutter = LineCutter()
    lines, start = [], 0
    for size in sizes:
        lines += cutter.feed(data[start : start + size])
        start += size
    lines += cutter.feed(data[start:]) + cutter.end()
    whole = data.split(b"\n") if data else []
    if whole and not whole[-1]:
        whole.pop()
    assert lines == [line.decode("utf-8", "replace").rstrip("\r") for line in whole]


def test_of_a_line_without_end_the_beginning_is_seen_once_and_the_rest_passed_over() -> None:
    """A process that dumps a gigabyte without a line break must not take a gigabyte of the guard's memory."""
    cutter = LineCutter(largest=10)
    assert cutter.feed(b"0123456789abc") == ["0123456789"]
    assert cutter.feed(b"d" * 1000) == []
    assert cutter.feed(b"e\nnext\n") == ["next"]
    assert cutter.feed(b"last") == []
    assert cutter.end() == ["last"]
