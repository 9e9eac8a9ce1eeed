"""Which of many snapshots count, and what of them."""

from pathlib import Path

from kelpie.evidence import read_evidence
from kelpie.evidence.snapshot_choice import MOST_RECENT, choose
from kelpie.evidence.snapshot_files import Header
from kelpie.observations import OFFSETS_TOPIC
from tests.collect.months import BEGAN, DELETED, FINE, HOUR, LAST, LOST, write


def headers(moments: list[int], answered: int = 1, cluster: str = "c") -> dict[str, Header]:
    return {f"{cluster}-{at:020}": Header(cluster, at, at, "h:1", answered=answered) for at in moments}


def test_the_newest_counts_and_of_the_others_some_by_age() -> None:
    """As many as the doctor would have kept in mind; not more, however many there are."""
    every_minute = list(range(0, 30 * 24 * HOUR, 60_000))
    choice = choose(headers(every_minute))
    ages = [(every_minute[-1] - int(name[2:])) // 60_000 for name in choice.earlier]
    assert choice.newest == f"c-{every_minute[-1]:020}"
    assert ages[-MOST_RECENT:] == list(range(MOST_RECENT, 0, -1))
    assert ages[:-MOST_RECENT] == [7 * 24 * 60 - 1, 24 * 60 - 1, 3 * 60 - 1, 29]
    assert len(choice.in_order) == len(every_minute)


def test_rounds_that_nobody_answered_are_no_looks() -> None:
    """The last one is told if no answer came after it."""
    some = headers([10, 30]) | headers([20, 40, 50], answered=0)
    choice = choose(some)
    assert (choice.newest, choice.failed) == (f"c-{30:020}", (f"c-{50:020}",))
    assert choose(headers([1, 2], answered=0)).failed == (f"c-{2:020}",)
    assert choose({}).newest is None
    before_it_had_a_name = headers([5], answered=0, cluster="h:1")
    assert choose(some | before_it_had_a_name).foreign == ()


def test_weeks_of_snapshots_say_what_they_should(tmp_path: Path) -> None:
    """Who lost its coordinator weeks ago is known with where it stood; who was deleted is forgotten."""
    write(tmp_path / "landing")
    found = read_evidence([tmp_path / "landing"])
    newest = {row.group: row for row in found.committed}
    assert newest[LOST].offset == 24
    assert newest[FINE].offset == LAST - 1
    assert DELETED not in newest
    assert found.known_groups.keys() == {LOST, FINE}
    changes = [row for row in found.partitions if row.told_by is None and row.partition == 1]
    assert [(row.leader, (row.at or 0) - BEGAN) for row in changes] == [
        (1, 0),
        (-1, 30 * HOUR),
        (-1, (LAST - 1) * HOUR + 58 * 60_000),
    ]
    assert [row.topic for row in found.partitions if row.told_by is not None] == [OFFSETS_TOPIC] * 2
    assert {(row.name, row.value) for row in found.settings} == {
        ("retention.ms", "0"),
        ("retention.ms", "60"),
    }
    assert found.settings[-1].value == "60"
    assert next(row.reason for row in found.unasked if row.kind == "broker").startswith("It refused (2026-")
    assert len({row.at for row in found.ends}) == MOST_RECENT + 1 + 4
