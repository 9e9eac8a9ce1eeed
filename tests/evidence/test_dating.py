"""When an output was made, though no tool prints it."""

# ruff: noqa: E501 - outputs are quoted as they stand.

import os
from pathlib import Path

import pytest

from kelpie.cluster.picture import end_of
from kelpie.evidence import read_evidence
from kelpie.evidence.dating import Dated, without_time
from kelpie.evidence.describes import Output
from kelpie.observations import Observations
from tests.evidence import Observation
from tests.evidence.records import batch, commit

HEADINGS = (
    "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     "
    "HOST            CLIENT-ID\n"
)
MINUTE = 60_000
START = 1794776160000
"""2026-11-15 20:56:00 UTC."""


def _offsets(offset: int) -> str:
    return (
        f"{HEADINGS}g               orders          0          {offset:<15} 900             0               -     "
        "          -               -\n"
    )


def _leader(time: str, leader: int, partition: int = 0) -> str:
    return (
        f"[2026-11-15 {time}] INFO [Broker id=9] Follower orders-{partition} starts at leader epoch 1 from offset 0 "
        f"with partition epoch 1 and high watermark 0. Current leader is {leader}. Previous leader Some(1) and "
        "previous leader epoch was 0. (state.change.logger)\n"
    )


def _topics(leader: int) -> str:
    return f"\tTopic: orders\tPartition: 0\tLeader: {leader}\tReplicas: 1,2\tIsr: {leader}\n"


def _write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def _touch(folder: Path, at: int) -> None:
    for path in folder.iterdir():
        os.utime(path, (at / 1000, at / 1000))


def _times(seen: Observations) -> dict[str, int | None]:
    rows: list[Observation] = [*seen.partitions, *seen.committed, *seen.listings]
    return {row.source.partition(":")[0]: row.at for row in rows}


def test_file_times_count_when_logs_show_that_they_were_kept(tmp_path: Path) -> None:
    """A log was last changed when its last line was written: then other files tell the truth, too."""
    _write(tmp_path, a__log=_leader("20:56:00,000", 1), topics__txt=_topics(2))
    os.utime(tmp_path / "a.log", (START / 1000, START / 1000))
    os.utime(tmp_path / "topics.txt", ((START + 9 * MINUTE) / 1000,) * 2)
    assert _times(read_evidence([tmp_path])) == {"topics.txt": START + 9 * MINUTE}


def test_file_times_of_a_copy_mean_nothing(tmp_path: Path) -> None:
    """All files have the same time, a day after the incident: nobody knows when the list was made."""
    _write(
        tmp_path, a__log=_leader("20:56:00,000", 1, partition=7), list__txt="GROUP   STATE\na       Stable\n"
    )
    _touch(tmp_path, START + 1440 * MINUTE)
    assert _times(read_evidence([tmp_path])) == {"list.txt": None}


def test_a_log_beside_an_output_tells_its_time(tmp_path: Path) -> None:
    """The tool's own warnings went to stderr, with times."""
    warning = "[2026-11-15 20:58:00,000] WARN [AdminClient clientId=a] Connection to node 2 could not be established."
    _write(tmp_path, topics__txt=_topics(2), topics__txt__err=warning)
    _touch(tmp_path, START + 1440 * MINUTE)
    assert _times(read_evidence([tmp_path])) == {"topics.txt": START + 2 * MINUTE}


@pytest.mark.parametrize(("leader", "minute"), [(1, 0), (2, 3), (3, 5)])
def test_leaders_that_are_shown_tell_between_which_changes(tmp_path: Path, leader: int, minute: int) -> None:
    """Logs say when each took over; the earliest such moment is taken."""
    log = _leader("20:56:00,000", 1) + _leader("20:59:00,000", 2) + _leader("21:01:00,000", 3)
    _write(tmp_path, a__log=log, topics__txt=_topics(leader))
    _touch(tmp_path, START + 1440 * MINUTE)
    assert _times(read_evidence([tmp_path])) == {"topics.txt": START + minute * MINUTE}


def test_what_fits_nothing_that_came_later_was_made_before(tmp_path: Path) -> None:
    """Logs often begin with the incident."""
    _write(tmp_path, a__log=_leader("20:59:00,000", 2), topics__txt=_topics(1))
    _touch(tmp_path, START + 1440 * MINUTE)
    assert _times(read_evidence([tmp_path])) == {"topics.txt": START + 3 * MINUTE - 1}


def test_offsets_that_are_shown_tell_between_which_commits(tmp_path: Path) -> None:
    """The offsets topic knows to the millisecond when a group stood where."""
    pairs = [commit("g", offset, at=START + offset) for offset in (100, 200, 300)]
    (tmp_path / "__consumer_offsets-3.log").write_bytes(batch(pairs))
    _write(tmp_path, offsets__txt=_offsets(200))
    _touch(tmp_path, START + 1440 * MINUTE)
    assert _times(read_evidence([tmp_path])) == {"offsets.txt": START + 200}


def test_outputs_of_one_batch_were_made_together(tmp_path: Path) -> None:
    """A list shows nothing that could be dated; the offsets beside it do."""
    pairs = [commit("g", offset, at=START + offset) for offset in (100, 200)]
    (tmp_path / "__consumer_offsets-3.log").write_bytes(batch(pairs))
    listing = "GROUP   STATE\ng       Stable\n"
    _write(
        tmp_path,
        before_list__txt=listing,
        before_offsets__txt=_offsets(100),
        during_offsets__txt=_offsets(200),
        during_list__txt=listing,
    )
    _touch(tmp_path, START + 1440 * MINUTE)
    assert _times(read_evidence([tmp_path])) == {
        "before_list.txt": START + 100,
        "before_offsets.txt": START + 100,
        "during_list.txt": START + 200,
        "during_offsets.txt": START + 200,
    }


def test_without_any_hint_names_put_them_in_order(tmp_path: Path) -> None:
    """Rows come in the order in which they were seen; "after" is not before "before"."""
    _write(tmp_path, after__txt=_topics(3), before__txt=_topics(1), during__txt=_topics(2))
    _touch(tmp_path, START)
    assert [row.leader for row in read_evidence([tmp_path]).partitions] == [1, 2, 3]


def test_states_and_members_of_one_batch_are_one_row(tmp_path: Path) -> None:
    """Two commands describe a group; a rule looks at the group."""
    states = "GROUP   COORDINATOR (ID)     ASSIGNMENT-STRATEGY  STATE   #MEMBERS\ng       h:9092  (2)         range                Stable  1\n"
    members = "GROUP   CONSUMER-ID  HOST  CLIENT-ID  #PARTITIONS\ng       m-1          /h    c          0\n"
    _write(
        tmp_path,
        before_state__txt=states,
        before_members__txt=members,
        after_state__txt=states.replace("Stable", "Empty "),
    )
    rows = [(row.state, row.coordinator, len(row.members)) for row in read_evidence([tmp_path]).states]
    assert rows == [("Stable", 2, 1), ("Empty", 2, 0)]


@pytest.mark.parametrize("time", ["20:58:00,500", "Nov 15 20:58:00"])
def test_a_log_without_date_lies_among_the_others(tmp_path: Path, time: str) -> None:
    """Everything is of one incident, so the day, or the year, is known from the other logs."""
    head = f"{time} host app[1]: INFO x.Y - " if " " in time else f"{time} [main] INFO x.Y - "
    _write(
        tmp_path,
        a__log=_leader("20:56:00,000", 1) + _leader("21:10:00,000", 2),
        b__log=head + "[Consumer clientId=c, groupId=g] (Re-)joining group\n",
    )
    _touch(tmp_path, START + 1440 * MINUTE)
    joining = [row.at for row in read_evidence([tmp_path]).events if row.group == "g"]
    assert joining == [START + 2 * MINUTE + (500 if "," in time else 0)]


def test_a_log_without_date_and_company_has_the_date_of_its_file(tmp_path: Path) -> None:
    """A file that was never copied is as old as its last line."""
    _write(tmp_path, b__log="20:58:00,500 [main] INFO x.Y - (Re-)joining group g\n")
    _touch(tmp_path, START + 2 * MINUTE + 500)
    assert [row.at for row in read_evidence([tmp_path]).events] == [START + 2 * MINUTE + 500]


def test_notes_of_the_day_after_do_not_make_it_the_present(tmp_path: Path) -> None:
    """What is of no use tells nothing, nor when it was told: else every finding would be a day old."""
    _write(tmp_path, a__log=_leader("20:56:00,000", 1), notes__txt="What we saw that day.\n")
    _touch(tmp_path, START + 1440 * MINUTE)
    seen = read_evidence([tmp_path])
    assert [row.name for row in seen.unasked] == ["notes.txt"]
    assert end_of(seen) == START


def test_history_is_asked_for_those_outputs_only_that_nothing_else_dates() -> None:
    """It may be that of months: whoever reads it must know that it is needed."""
    told = Dated(Output("a.txt", times=[START]), None)
    shown = Dated(Output("b.txt"), START + 1440 * MINUTE)
    assert without_time([told, shown], [], {"a.txt": None, "b.txt": START}) == [shown]
    assert without_time([told, shown], [], {"a.txt": START, "b.txt": START + 9 * MINUTE}) == []
