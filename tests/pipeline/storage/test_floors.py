"""Tables that are closed before a day: old rows go in one commit, do not come back, and others stay."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from kelpie.pipeline.storage.changes import changes
from kelpie.pipeline.storage.exchange import exchange
from kelpie.pipeline.storage.floors import aged_files, closed_mark, kept_mark, kept_since, rewritten
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.parquet import Writer, write_rows
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.lifetimes import is_young

LAG, COMMITS, REGRESSION, CLUSTER = TABLES["lag"], TABLES["offset_commit"], TABLES["offset_regression"], "c"
FIRST, FLOOR = datetime(2026, 11, 1, tzinfo=UTC), date(2026, 11, 4)


def looks(*days: int) -> list[dict[str, object]]:
    return [
        {"cluster": CLUSTER, "group": "g", "topic": "t", "partition": 0, "at": FIRST + timedelta(days=day)}
        for day in days
    ]


def days(lake: Lake) -> list[int]:
    return sorted((row["at"] - FIRST).days for row in lake.rows(LAG, CLUSTER).to_pylist())


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return filled(Lake(tmp_path))


def filled(lake: Lake) -> Lake:
    """A file that is old, one that is not, and one with both kinds of rows."""
    for number, some in enumerate([(0, 1), (2, 3), (4, 5)]):
        lake.append_rows(LAG, CLUSTER, looks(*some), application="a", version=number)
    return lake


def age(lake: Lake) -> None:
    delta, folder = lake.open(LAG), lake.path(LAG)
    files = aged_files(delta, folder, LAG, CLUSTER, FLOOR)
    assert sorted(file.is_whole for file in files) == [False, True]
    stay = [
        new
        for file in files
        if not file.is_whole
        for new in rewritten(LAG, folder, file.path, cluster=CLUSTER, within={}, where=is_young(LAG, FLOOR))
    ]
    paths = [file.path for file in files]
    exchange(delta, folder, remove=paths, add=stay, marks=[kept_mark(CLUSTER, FLOOR)], aged=True)


def test_old_rows_go_and_do_not_come_back(lake: Lake) -> None:
    """A file that is read again brings what is young."""
    before = lake.state_of(LAG)
    age(lake)
    assert days(lake) == [3, 4, 5]
    assert kept_since(lake.open(LAG), CLUSTER) == FLOOR
    assert not changes(lake, LAG, CLUSTER, since=before, until=lake.state_of(LAG))
    lake.append_rows(LAG, CLUSTER, looks(0, 2, 6), application="a", version=3)
    assert days(lake) == [3, 4, 5, 6]
    assert DeltaTable(str(lake.path(LAG))).to_pyarrow_table().num_rows == 4
    lake.sweep(timedelta(hours=1), timedelta(0))
    assert days(lake) == [3, 4, 5, 6]


def test_rows_before_the_floor_stay_as_they_are(lake: Lake) -> None:
    """Whether a table is made as a whole, or rows of it are replaced."""
    exchange(lake.open(LAG), lake.path(LAG), remove=(), add=(), marks=[closed_mark(CLUSTER, FLOOR)])
    files = write_rows(LAG, lake.path(LAG), CLUSTER, looks(1, 3, 7))
    lake.renew(LAG, CLUSTER, files, application="r", version=1)
    assert days(lake) == [0, 1, 2, 3, 7]
    lake.delete(LAG, CLUSTER, "\"group\" = 'g'")
    assert days(lake) == [0, 1, 2]
    lake.replace(LAG, CLUSTER, write_rows(LAG, lake.path(LAG), CLUSTER, looks(0, 8)), made_of=1)
    assert days(lake) == [0, 1, 2, 8]
    assert lake.made_of(LAG, CLUSTER) == 1


def test_other_clusters_have_their_own_floor(lake: Lake) -> None:
    """Several clusters share a table."""
    age(lake)
    row = {**looks(0)[0], "cluster": "d"}
    lake.append_rows(LAG, "d", [row], application="of d", version=0)
    assert lake.count(LAG, "d") == 1


def test_row_that_has_not_ended_is_not_old(tmp_path: Path) -> None:
    """A regression that was not regained, however long ago it was."""
    lake = Lake(tmp_path)
    rows = [
        {**row, "from_offset": 2, "to_offset": 1, "replayed": 1, "regained": regained}
        for row, regained in zip(looks(0, 0), (None, FIRST + timedelta(days=1)), strict=True)
    ]
    lake.append_rows(REGRESSION, CLUSTER, rows, application="a", version=0)
    (file,) = aged_files(lake.open(REGRESSION), lake.path(REGRESSION), REGRESSION, CLUSTER, FLOOR)
    assert not file.is_whole
    young = lake.rows(REGRESSION, CLUSTER, is_young(REGRESSION, FLOOR))
    assert young["regained"].to_pylist() == [None]


def test_age_of_a_commit_without_a_time_of_its_record_is_that_of_the_commit(tmp_path: Path) -> None:
    """Kafka before 0.10 wrote records without a time."""
    lake = Lake(tmp_path)
    row = {"cluster": CLUSTER, "offsets_partition": 0, "group": "g", "topic": "t", "partition": 0}
    times = [(None, FIRST), (FIRST + timedelta(days=9), FIRST), (None, None)]
    rows = [
        {
            **row,
            "log_offset": number,
            "is_transactional": False,
            "source": "s",
            "written": written,
            "committed": committed,
        }
        for number, (written, committed) in enumerate(times)
    ]
    lake.append_rows(COMMITS, CLUSTER, rows, application="a", version=0)
    assert len(aged_files(lake.open(COMMITS), lake.path(COMMITS), COMMITS, CLUSTER, FLOOR)) == 1
    young = lake.rows(COMMITS, CLUSTER, is_young(COMMITS, FLOOR))
    assert sorted(young["log_offset"].to_pylist()) == [1, 2]


def test_row_that_lacks_what_is_required_is_written_anew_as_it_is(tmp_path: Path) -> None:
    """Spark writes it so: a generation of Kafka 0.9 of which no commit tells the time."""
    table = TABLES["group_generation"]
    writer = Writer(table, tmp_path, CLUSTER, as_stored=True)
    ended = [FIRST, None]
    rows = [{"group": "g", "incarnation": 0, "generation": 1, "began": None, "ended": each} for each in ended]
    writer.write(pa.Table.from_pylist([{"cluster": CLUSTER, **row} for row in rows], table.schema), {})
    (file,) = writer.close()
    young = is_young(table, FLOOR)
    (fresh,) = rewritten(table, tmp_path, file.path, cluster=CLUSTER, within={}, where=young)
    assert fresh.rows == 1


def test_rows_that_another_writer_adds_meanwhile_stay(lake: Lake) -> None:
    """The commit takes the next number, and knows nothing of the files that came."""
    delta = lake.open(LAG)
    lake.append_rows(LAG, CLUSTER, looks(9), application="another", version=0)
    exchange(delta, lake.path(LAG), remove=[_oldest(lake)], add=())
    assert days(lake) == [2, 3, 4, 5, 9]


def test_file_that_another_writer_has_replaced_is_told(lake: Lake) -> None:
    """Its rows are in another file now: to go on would keep them."""
    path = _oldest(lake)
    lake.compact(LAG, CLUSTER)
    with pytest.raises(CommitFailedError):
        exchange(lake.open(LAG), lake.path(LAG), remove=[path], add=())


def _oldest(lake: Lake) -> str:
    files = aged_files(lake.open(LAG), lake.path(LAG), LAG, CLUSTER, FLOOR)
    return next(file.path for file in files if file.is_whole)
