"""Labels over midnight: kept where the series goes on growing, and the broker was not started in between."""

import pyarrow as pa
import pytest

from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.traffic.midnight import digest, going_on, settled
from tests.pipeline.traffic.scrapes import Place, a_delta, deltas, sample_rows

OWN, OTHER, LOST = ("t", 0, "own"), ("t", 0, "other"), ("t", 0, "")


def samples(*scrapes: tuple[float, dict[Place, int]]) -> pa.Table:
    rows = [row for second, values in scrapes for row in sample_rows(values, second)]
    return pa.Table.from_pylist(rows, TABLES["traffic_sample"].schema)


@pytest.mark.parametrize(
    ("after", "steady"),
    [
        ({OWN: 6, OTHER: 3}, True),
        ({OWN: 5, OTHER: 4}, False),
        ({OWN: 6}, False),
        ({OWN: 6, OTHER: 1}, False),
        ({}, False),
    ],
    ids=["it grows on", "it stands still", "a series is gone", "another has fallen", "no scrape follows"],
)
def test_group_is_steady_if_it_grows_on(after: dict[Place, int], *, steady: bool) -> None:
    """The last scrape of the old day counts, and the first one of the new day."""
    closing = samples((0, {OWN: 3, OTHER: 3}), (60, {OWN: 5, OTHER: 3}))
    keys = going_on(closing, samples((120, after)) if after else samples())
    open_delta = deltas(a_delta(0, 60), a_delta(0, 60, beside=[("own", 2, None), ("z", 1, True)]))  # type: ignore[list-item]
    rows = settled(open_delta, keys).to_pylist()
    assert [[(each["group"], each["is_steady"]) for each in row["beside"]] for row in rows] == [
        [],
        [("own", steady), ("z", True)],
    ]


def test_digest_is_that_of_the_keys_in_any_order() -> None:
    """So a day is not made again for the same evidence."""
    assert digest(pa.array(["a", "b"])) == digest(pa.array(["b", "a"])) != digest(pa.array(["a"]))
