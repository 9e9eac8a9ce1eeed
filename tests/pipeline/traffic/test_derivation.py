"""Traffic by committed offsets and the sizes of logs: right where it can be known, null where it cannot."""

from typing import Any

import pyarrow as pa
import pytest

from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.traffic.derivation import COLUMNS, derived, last_of_each
from kelpie.pipeline.traffic.growth import TOLD
from tests.pipeline.rows import at

Row = dict[str, Any]


def log(second: float, end: int, size: int | None, start: int = 0, **more: Any) -> Row:
    """What a survey saw of the log t-0. It is one of a topic that retention alone shortens."""
    place = {"at": at(second), "topic": "t", "partition": 0, "broker": "broker 1", "is_whole": True}
    return {**place, "offset": end, "start_offset": start, "size": size, **more}


def group(second: float, offset: int, name: str = "g", epoch: int | None = None, **more: Any) -> Row:
    place = {"at": at(second), "topic": "t", "partition": 0, "group": name}
    return {**place, "offset": offset, "leader_epoch": epoch, **more}


def table(*rows: Row) -> pa.Table:
    schema = TABLES["offset_sample"].schema
    told = pa.array([row.get(TOLD, False) for row in rows], pa.bool_())
    columns = pa.schema([schema.field(name) for name in COLUMNS])
    return pa.Table.from_pylist(list(rows), columns).append_column(TOLD, told)


def told(*rows: Row) -> list[tuple[str, int, int | None]]:
    found = sorted(derived(table(*rows)).to_pylist(), key=lambda row: (row["ended"], row["group"]))
    return [(row["group"], row["messages"], row["bytes"]) for row in found]


def growing(*sizes: int, a_step: int = 100, **more: Any) -> list[Row]:
    """The log grows by so many offsets from survey to survey; `sizes` are its bytes."""
    return [log(30 * place, a_step * (place + 1), size, **more) for place, size in enumerate(sizes)]


def test_bytes_are_those_of_the_offsets_that_were_read() -> None:
    """The group lags one step behind: it reads the large records later than they come."""
    logs = growing(1_000, 2_000, 12_000, 13_000)
    positions = [group(0, 0), group(30, 100), group(60, 200), group(90, 250)]
    assert told(*logs, *positions) == [("g", 100, 1_000), ("g", 100, 1_000), ("g", 50, 5_000)]


def test_a_row_has_the_leader_and_the_two_surveys() -> None:
    """And partitions, groups and topics are told apart."""
    other: dict[str, Any] = {"topic": "u", "partition": 3}
    rows = [log(0, 10, 100), log(30, 20, 300), group(0, 10), group(30, 20), group(30, 15, "first-seen")]
    rows += [log(0, 5, 50, **other), log(30, 9, 90, **other), group(0, 1, "h", **other)]
    rows += [group(30, 9, "h", **other)]
    (first, second) = sorted(derived(table(*rows)).to_pylist(), key=lambda row: str(row["topic"]))
    assert first == {
        "broker": "broker 1",
        "topic": "t",
        "partition": 0,
        "group": "g",
        "began": at(0),
        "ended": at(30),
        "messages": 10,
        "bytes": 200,
    }
    assert (second["topic"], second["partition"], second["messages"], second["bytes"]) == ("u", 3, 8, 80)


def test_log_before_the_first_survey_counts_by_its_size() -> None:
    """A group that reads it from the beginning reads all its bytes. Nobody writes meanwhile."""
    rows = [log(0, 100, 5_000), log(30, 100, 5_000), log(60, 100, 5_000)]
    assert told(*rows, group(0, 0), group(30, 50), group(60, 100)) == [("g", 50, 2_500), ("g", 50, 2_500)]
    later = [{**row, "start_offset": 40} for row in rows]
    assert told(*later, group(0, 50), group(30, 100)) == [("g", 50, None)]


@pytest.mark.parametrize(
    "logs",
    [
        pytest.param([log(0, 100, 1_000), log(30, 200, None)], id="no size"),
        pytest.param(growing(1_000, 2_000, is_whole=False), id="compacted, or tiered"),
        pytest.param(growing(1_000, 2_000, is_whole=None), id="settings that are not known"),
        pytest.param([log(0, 100, 1_000), log(30, 200, 1_900, broker="broker 2")], id="another leader"),
        pytest.param([log(0, 100, 1_000), log(30, 200, 900)], id="smaller, and its start has not moved"),
        pytest.param([log(0, 100, 1_000), log(30, 200, 1_500, 50)], id="its start has moved"),
    ],
)
def test_bytes_are_null_where_the_log_does_not_tell_them(logs: list[Row]) -> None:
    """The messages are known all the same."""
    assert told(*logs, group(0, 100), group(30, 200)) == [("g", 100, None)]


def test_retention_that_removes_between_surveys_is_corrected() -> None:
    """Of ten bytes an offset; segments of 200 offsets, the oldest goes at the last survey."""
    logs = [log(30 * place, 100 * (place + 1), 1_000 * (place + 1)) for place in range(6)]
    logs.append(log(180, 700, 5_000, 200))
    positions = [group(150, 600), group(180, 700)]
    assert told(*logs, *positions) == [("g", 100, 1_000)]


def test_deleted_records_leave_their_bytes_for_a_while() -> None:
    """DeleteRecords: the start moves, and the log has grown by what was appended. No segment was free yet."""
    logs = [log(30 * place, 100 * (place + 1), 1_000 * (place + 1)) for place in range(6)]
    logs.append(log(180, 700, 7_000, 400))
    assert told(*logs, group(150, 600), group(180, 700)) == [("g", 100, 1_000)]


def test_two_explanations_that_are_both_possible_tell_nothing() -> None:
    """The start moved by 60 offsets: 1,000 bytes appended and none removed, or 1,600 and 600 removed."""
    logs = [log(30 * place, 100 * (place + 1), 1_000 * place, 100) for place in range(6)]
    logs += [log(180, 700, 6_000, 160), log(210, 800, 7_000, 160)]
    assert told(*logs, group(150, 600), group(180, 700), group(210, 800)) == [
        ("g", 100, None),
        ("g", 100, 1_000),
    ]


def test_offset_that_goes_back_or_was_reset_is_no_traffic() -> None:
    """What is read again afterwards is."""
    logs = growing(1_000, 2_000, 3_000, 4_000)
    back = [group(0, 100), group(30, 40), group(60, 140), group(90, 140)]
    assert told(*logs, *back) == [("g", 100, 1_000)]
    reset = [group(0, 10, epoch=3), group(30, 150), group(60, 250, epoch=3)]
    assert told(*logs, *reset) == [("g", 100, 1_000)]


def test_records_that_were_gone_were_not_read() -> None:
    """The group was below the start of the log: it goes on from there."""
    logs = [log(0, 100, 500, 50), log(30, 200, 1_500, 50), log(60, 300, 2_500, 50)]
    assert told(*logs, group(0, 10), group(30, 100)) == [("g", 50, 500)]


def test_topic_that_was_made_again_is_another_log() -> None:
    """Its offsets begin anew, and so do the positions in it."""
    logs = [log(0, 900, 9_000), log(30, 100, 700), log(60, 200, 1_400)]
    assert told(*logs, group(0, 50), group(30, 80), group(60, 180)) == [("g", 100, 700)]


def test_position_that_was_not_seen_for_a_while_spans_several_surveys() -> None:
    """Its coordinator did not answer; the unknown step in between makes the bytes unknown."""
    logs = growing(1_000, 2_000, 3_000)
    assert told(*logs, group(0, 100), group(60, 300)) == [("g", 200, 2_000)]
    logs[1]["size"] = None
    assert told(*logs, group(0, 100), group(60, 300)) == [("g", 200, None)]


def test_day_goes_on_from_the_last_samples_of_the_day_before() -> None:
    """They are compared with, and not told again."""
    first = [*growing(1_000, 2_000), group(0, 0), group(30, 150), group(0, 100, "gone")]
    kept = last_of_each(table(*first).drop_columns([TOLD]))
    assert [(row["group"], row["offset"]) for row in kept.to_pylist()] == [
        (None, 200),
        ("g", 150),
        ("gone", 100),
    ]
    before = [{**row, TOLD: True} for row in kept.to_pylist()]
    assert told(*before, log(60, 300, 4_000), group(60, 250)) == [("g", 100, 1_500)]


def test_nothing_to_tell() -> None:
    """No samples at all; no log; no group."""
    assert told() == []
    assert told(group(0, 1), group(30, 2)) == []
    assert told(log(0, 1, 10), log(30, 2, 20)) == []
