"""Text of others on a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from kelpie.model.quoting import harmless, quoted, words_of


def test_harmless_spells_out_what_a_terminal_obeys() -> None:
    """And leaves the letters of all languages alone."""
    assert harmless("消费者组 😀 café-1") == "消费者组 😀 café-1"
    assert harmless("a\x00b\x9bc\u2028d\ud800") == "a\\x00b\\x9bc\\u2028d\\ud800"
    assert harmless("\U000e0041") == "\\U000e0041"


@given(st.lists(st.text(), min_size=1))
def test_the_words_of_a_command_keep_their_quotes(words: list[str]) -> None:
    """A command is folded, and gets more options, without a change to the names in it."""
    quoted_words = [quoted(word) for word in words]
    assert words_of(" ".join(quoted_words)) == quoted_words
