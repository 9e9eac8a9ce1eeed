"""Rows of positions in words, also those of brokers that are newer than Kelpie, or lie."""

import pytest

from kelpie.doctor.position_words import evidence_of
from kelpie.observations import Committed, LogEnds


@pytest.mark.parametrize("code", [-32_768, 9999])
def test_an_error_code_that_kafka_does_not_have_is_quoted(code: int) -> None:
    """It ended the doctor: the name of such a code was looked for."""
    committed = Committed("billing", "orders", 0, -1, code)
    ends = LogEnds("orders", 0, -1, -1, -1, code)
    assert [piece.text for piece in evidence_of(committed, ends)] == [
        f"orders-0: error {code} (unknown error code) instead of the committed offset",
        f"orders-0: error {code} (unknown error code) instead of its ends",
    ]


def test_an_error_code_is_named() -> None:
    """For a reader who knows the names."""
    [piece] = evidence_of(Committed("billing", "orders", 0, -1, 15))
    assert piece.text == "orders-0: error 15 COORDINATOR_NOT_AVAILABLE instead of the committed offset"
