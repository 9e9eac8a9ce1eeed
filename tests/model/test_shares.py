"""Shares of trials with their intervals."""

import pytest

from kelpie.model.shares import wilson


@pytest.mark.parametrize(
    ("hits", "number", "low", "high"),
    [(0, 10_000, 0.0, 0.000384), (50, 100, 0.4038, 0.5962), (10, 10, 0.7225, 1.0), (0, 0, 0.0, 1.0)],
)
def test_wilsons_interval(hits: int, number: int, low: float, high: float) -> None:
    """Values from Wilson's formula by hand. No hit in many trials is not "certainly never"."""
    share = wilson(hits, number)
    assert share.low == pytest.approx(low, abs=1e-4)
    assert share.high == pytest.approx(high, abs=1e-4)
