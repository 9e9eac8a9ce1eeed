"""Times that come from outside."""

import pytest

from kelpie.model.time import LATEST, iso_time, plausible, utc
from kelpie.model.words import moment


def test_times_that_cannot_be_are_none() -> None:
    """Before 1970, after 2100, microseconds taken for milliseconds."""
    now = 1_794_793_788_619
    assert plausible(now) == now
    assert plausible(0) == 0
    assert [plausible(at) for at in (None, -1, LATEST, now * 1000, 2**63 - 1, -(2**63))] == [None] * 6


@pytest.mark.parametrize("at", [-(2**63), -(10**15), -1, 0, 253_402_300_800_000, 2**63 - 1, 10**30])
def test_any_number_can_be_shown(at: int) -> None:
    """What was kept by an earlier release may hold any number: showing it must not end the command."""
    assert iso_time(at).endswith("Z")
    assert moment(at).endswith("UTC")
    assert 1 <= utc(at).year <= 9999
