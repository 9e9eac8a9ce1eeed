"""Many queries over few rows, as for rounds."""

from tests.pipeline.rounds.test_rounds import quick

__all__ = ["quick"]
