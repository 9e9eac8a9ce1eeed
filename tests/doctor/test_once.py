"""Work that several rules share is done once a case."""

from dataclasses import dataclass

from kelpie.doctor.once import once


@dataclass(frozen=True)
class Subject:
    name: str


def test_work_is_done_once_for_each_argument_of_the_last_subject() -> None:
    """Thirteen rules ask for the same way of a group through a partition."""
    done: list[tuple[str, int]] = []

    @once
    def work(subject: Subject, number: int) -> str:
        done.append((subject.name, number))
        return f"{subject.name} {number}"

    first = Subject("a")
    assert [work(first, 1), work(first, 2), work(first, 1)] == ["a 1", "a 2", "a 1"]
    assert done == [("a", 1), ("a", 2)]


def test_another_subject_is_another_work_even_if_it_is_equal() -> None:
    """Cases are compared by what they are, not by what they hold: that would cost more than the work."""
    done: list[str] = []

    @once
    def work(subject: Subject) -> str:
        done.append(subject.name)
        return subject.name

    first, twin = Subject("a"), Subject("a")
    work(first)
    work(twin)
    work(first)
    assert done == ["a", "a", "a"]
