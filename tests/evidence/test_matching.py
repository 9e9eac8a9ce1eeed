"""Templates of messages: each is an expression, which is compiled when a message comes that may be meant."""

from itertools import chain

import pytest

from kelpie.evidence.logs import librdkafka, log_reader
from kelpie.evidence.logs.matching import pattern
from kelpie.observations import EventKind


def test_every_template_has_an_expression_with_its_names() -> None:
    """Names are read from the template, and values from the expression, in the same order."""
    tables = (log_reader.TABLE, *librdkafka.TABLES.values())
    patterns = list(chain.from_iterable(table.patterns for table in tables))
    assert len(patterns) > 200
    for each in patterns:
        assert tuple(each.regex.groupindex) == each.names, each.template


def test_a_name_stands_once_in_a_template() -> None:
    """There would be two values for one field."""
    with pytest.raises(AssertionError, match="from"):
        pattern(EventKind.JOINED, "from {member} to {member}")
