"""Templates: what they match, and that no text makes them work for long."""

from hypothesis import given
from hypothesis import strategies as st

from kelpie.web.translation.notation import Template, parse, written


def holes(template: str, text: str) -> list[tuple[str, ...]]:
    return [match.holes for match in Template.of(template).matches(text)]


def test_a_template_is_written_as_it_was_read() -> None:
    for text in ("Group {0} {a:has|have} {1#}: {2}.", "plain", "{0}"):
        assert written(parse(text)) == text


def test_holes_take_what_is_between_the_fixed_parts() -> None:
    assert holes("Group {0} has no coordinator: {1}.", "Group g has no coordinator: x.") == [("g", "x")]
    assert holes("Group {0} has no coordinator: {1}.", "Group g has a coordinator.") == []


def test_a_name_with_a_fixed_part_in_it_gives_several_ways() -> None:
    """Which of them is right is decided by what is in the holes."""
    assert holes("{0}: {1}", "a: b: c") == [("a", "b: c"), ("a: b", "c")]


def test_a_choice_says_which_word_it_was() -> None:
    (match,) = Template.of("{0} {a:is|are} dead").matches("brokers 1 and 2 are dead")
    assert (match.holes, match.chosen) == (("brokers 1 and 2",), {"a": 1})


def test_a_hole_for_a_number_takes_nothing_else() -> None:
    """Else "Unknown member" would be a number of members."""
    assert holes("{0#} {a:member|members}", "1,024 members") == [("1,024",)]
    assert holes("{0#} {a:member|members}", "Unknown member") == []


def test_a_full_stop_in_a_name_ends_no_sentence() -> None:
    first, *_ = holes("{0}.{1}", "topic orders.v2 is gone. Start it.")
    assert first == ("topic orders.v2 is gone", " Start it.")


@given(st.text("ab: .", max_size=60))
def test_ways_are_few_and_make_up_the_text(text: str) -> None:
    """However often the fixed parts occur."""
    template = "{0}: {1} a {2}"
    ways = holes(template, text)
    assert len(ways) <= 10
    for first, second, third in ways:
        assert f"{first}: {second} a {third}" == text
