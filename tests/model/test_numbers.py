"""Numbers in texts that somebody else wrote."""

import pytest

from kelpie.model.numbers import whole_number


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", " 1", "1_0", "²", "٣", "9" * 5000, str(2**63), "1e3", "0x1"]
)
def test_what_kafka_would_not_write_is_no_number(text: str) -> None:
    """int raises ValueError for some of them, and reads others."""
    assert whole_number(text) is None


def test_numbers_are_read() -> None:
    """Up to the largest that Kafka has."""
    assert [whole_number(text) for text in ("0", "007", str(2**63 - 1))] == [0, 7, 2**63 - 1]
