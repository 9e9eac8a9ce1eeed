"""`group_history` of `kelpie mcp`, from tables as the pipeline leaves them."""

from pathlib import Path

from kelpie.assistant.server import assistant_server
from kelpie.assistant.sources import Sources
from kelpie.model.time import iso_time
from tests.assistant.test_server import answer, asked
from tests.doctor.building import HOUR, MINUTE, NOW
from tests.pipeline.lakes import a_lake, at

MINUTES = 600
PLACE = {"topic": "orders", "partition": 0, "group": "billing"}


def _tables(folder: Path) -> Path:
    """Ten hours of a group: its lag falls to 0, and a member expires."""
    rows = {
        "evidence_file": [{"source": "a", "path": "/a", "size": 1, "kinds": ["log"], "batch": 1}],
        "lag": [
            {**PLACE, "at": at(NOW - number * MINUTE), "lag": number, "lag_ms": number * 1000}
            for number in range(MINUTES)
        ],
        "rebalance": [
            {"group": "billing", "started": at(NOW - HOUR), "to_generation": 2, "cause": "expired"},
            {"group": "billing", "started": at(NOW - 9 * HOUR), "to_generation": 1},
        ],
    }
    a_lake(folder, rows)
    return folder


def test_a_group_of_tables_has_its_lag_and_its_rebalances(tmp_path: Path) -> None:
    """Ten hours of it are told in few values, and the highest of them is there."""
    server = assistant_server(Sources({}, {}, {"fleet": _tables(tmp_path / "tables")}))
    told = asked(server, lambda client: answer(client, "group_history", tables="fleet", group="billing"))
    lags = [value["value"] for value in told["lag"]]
    assert lags[0] == max(lags) == MINUTES - 1
    assert lags[-1] < 10
    assert len(lags) <= 200
    assert sorted((each["at"], each["text"]) for each in told["rebalances"]) == [
        (iso_time(NOW - 9 * HOUR), "generation 1"),
        (iso_time(NOW - HOUR), "generation 2, expired"),
    ]
    assert told["rebalances_left_out"] == 0


def test_a_group_that_tables_do_not_know_has_no_history(tmp_path: Path) -> None:
    server = assistant_server(Sources({}, {}, {"fleet": _tables(tmp_path / "tables")}))
    told = asked(server, lambda client: answer(client, "group_history", tables="fleet", group="nobody"))
    assert (told["lag"], told["rebalances"]) == ([], [])
