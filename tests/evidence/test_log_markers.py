"""Which words a line is searched for before it is read."""

from bench.pipeline_log_lines import NOISE

from kelpie.evidence.logs.log_reader import TABLE
from kelpie.evidence.logs.markers import Why, markers


def test_lines_that_mean_nothing_have_no_word_that_means_something() -> None:
    """They are nearly all lines of a log: a word that some of them have costs more than all others."""
    words = [word for word, why in markers().items() if Why.MEANS in why]
    assert not [(word, text) for _, _, text in NOISE for word in words if word in text]


def test_every_template_has_a_word() -> None:
    words = tuple(markers())
    without = [row.template for row in TABLE.patterns if not any(word in row.template for word in words)]
    assert not without
