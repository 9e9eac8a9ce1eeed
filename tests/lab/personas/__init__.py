"""Each persona of the lab against the release that it passes for: same test, same answers.

A test runs on the lab and on the real release. What it asserts must hold on both; beyond that, every answer
that it got is kept, and what the two said is compared field by field (see `transcript.py`).
"""

import pytest

RELEASES = {"0.9": "0.9.0.1", "2.8": "2.8.2", "3.9": "3.9.2", "4.3": "4.3.1"}
OLD = ("0.9", "2.8", "3.9")
"""4.3 has the differential test; here it is met where there are no groups."""
KINDS = ("lab", "real")


def personas(*names: str) -> pytest.MarkDecorator:
    """Runs a test on the lab and on real Kafka, for these personas or for all old ones."""
    return pytest.mark.parametrize(
        "cluster",
        [
            pytest.param(
                (name, kind), id=f"{name}-{kind}", marks=[pytest.mark.real] if kind == "real" else []
            )
            for name in names or OLD
            for kind in KINDS
        ],
        indirect=True,
    )
