"""Text of others on a terminal."""

from kelpie.model.quoting import harmless


def test_harmless_spells_out_what_a_terminal_obeys() -> None:
    """And leaves the letters of all languages alone."""
    assert harmless("消费者组 😀 café-1") == "消费者组 😀 café-1"
    assert harmless("a\x00b\x9bc\u2028d\ud800") == "a\\x00b\\x9bc\\u2028d\\ud800"
    assert harmless("\U000e0041") == "\\U000e0041"
