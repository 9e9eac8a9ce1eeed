"""Logs that are renamed, or copied away and emptied, at any moment: each line is told once."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from kelpie.observations import Event
from kelpie.pipeline.sources.logs import intake as logs
from tests.pipeline.sources.logs.growing_logs import Growing, wanted
from tests.pipeline.sources.logs.log_texts import ENTRIES, TOLD, plain


@pytest.fixture
def growing(spark: SparkSession, tmp_path: Path) -> Growing:
    return Growing(spark, tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder / "server.log"


def lines(begin: int, end: int) -> str:
    """Of one log, whose lines all tell something, at different times."""
    return "".join(ENTRIES[0].format(s=number // 60, ms=number, n=1) + "\n" for number in range(begin, end))


def copied(path: Path, number: int = 1) -> Path:
    copy = path.with_name(f"{path.name}.{number}")
    shutil.copyfile(path, copy)
    return copy


def renamed(path: Path, number: int = 1) -> Path:
    return path.rename(path.with_name(f"{path.name}.{number}"))


def write(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def empty(path: Path) -> None:
    with path.open("r+") as file:
        file.truncate()


class Moment:
    """Something happens when tasks begin to read logs, or when they have just read them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before: Callable[[], object] = lambda: None
        self.after: Callable[[], object] = lambda: None
        run = logs._run

        def meanwhile(*arguments: object) -> object:
            self.before()
            outcomes = run(*arguments)  # type: ignore[arg-type]
            self.after()
            self.before = self.after = lambda: None
            return outcomes

        monkeypatch.setattr(logs, "_run", meanwhile)


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Moment:
    return Moment(monkeypatch)


def test_a_log_that_cannot_be_read_on_is_told_once_under_its_new_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Too short to know its layout for sure, and then copied away, as logrotate does it."""
    lines = [ENTRIES[0].format(s=number, ms=number, n=1) for number in range(9)]
    path = tmp_path / "server.log"
    growing = Growing(spark, tmp_path)
    path.write_text("\n".join(lines) + "\n")
    assert len(growing.take_in(path)) == 9
    copy = tmp_path / "server.log.1"
    copy.write_text("\n".join([*lines, lines[5]]) + "\n")
    path.write_text("")
    assert plain(growing.take_in(copy)) == wanted(copy)
    path.write_text(lines[7] + "\n")
    assert len(growing.take_in(path)) == 11


def test_a_log_is_still_known_when_its_old_name_has_told_of_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Between two looks it was copied away and emptied; the copy is found only after the new lines."""
    lines = [ENTRIES[0].format(s=number, ms=number, n=1) for number in range(40)]
    path, copy = tmp_path / "server.log", tmp_path / "server.log.1"
    growing = Growing(spark, tmp_path)
    path.write_text("\n".join(lines) + "\n")
    assert len(growing.take_in(path)) == 40
    path.write_text("\n".join(line.replace("20:56", "20:57") for line in lines[:5]) + "\n")
    assert len(growing.take_in(path)) == 45
    copy.write_text("\n".join([*lines, lines[7]]) + "\n")
    assert len(growing.take_in(copy)) == 46


def test_a_log_and_its_copy_are_told_once(growing: Growing, path: Path) -> None:
    """Between copying and emptying it there are two."""
    write(path, lines(0, 40))
    growing.take_in(path)
    write(path, lines(40, 45))
    copy = copied(path)
    assert len(growing.take_in(path, copy)) == 45
    empty(path)
    write(path, lines(100, 103))
    assert len(growing.take_in(path)) == 48
    write(copy, lines(45, 46))
    assert len(growing.take_in(copy)) == 49


def test_a_copy_that_is_still_being_made_tells_nothing_new(growing: Growing, path: Path) -> None:
    """The log itself is not looked at: it has not changed."""
    write(path, lines(0, 40))
    growing.take_in(path)
    copy = path.with_name("server.log.1")
    write(copy, lines(0, 10))
    assert len(growing.take_in(copy)) == 40
    write(copy, lines(10, 40))
    empty(path)
    assert len(growing.take_in(copy)) == 40


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("how", "known"), [(copied, 0), (copied, 40), (renamed, 0), (renamed, 40)])
def test_a_log_that_goes_away_while_it_is_read_counts_under_its_new_name(
    growing: Growing, path: Path, moment: Moment, *, when: str, how: Callable[[Path], Path], known: int
) -> None:
    """What had been read of it does not count, whether it had been read already or was not yet."""
    write(path, lines(0, known))
    growing.take_in(path)
    write(path, lines(known, 45))
    moved: list[Path] = []

    def rotate() -> None:
        moved.append(how(path))
        path.write_text(lines(100, 103))

    setattr(moment, when, rotate)
    assert len(growing.take_in(path)) == known
    assert growing.changed == ["server.log"]
    assert len(growing.take_in(*moved)) == 45
    assert len(growing.take_in(path)) == 48


def test_a_copy_counts_if_the_log_went_away_before_it_was_read(
    growing: Growing, path: Path, moment: Moment
) -> None:
    write(path, lines(0, 40))
    copy = copied(path)
    write(path, lines(40, 41))
    moment.before = lambda: empty(path)
    assert plain(growing.take_in(path, copy)) == wanted(copy)
    assert growing.changed == ["server.log"]


def test_a_log_that_gets_its_first_line_while_it_is_read_is_told_once(
    growing: Growing, path: Path, moment: Moment
) -> None:
    path.write_text("")
    moment.before = lambda: write(path, lines(0, 30))
    growing.take_in(path)
    assert plain(growing.take_in(path)) == wanted(path)
    write(path, lines(30, 31))
    assert plain(growing.take_in(path)) == wanted(path)


@pytest.mark.parametrize("beginning", ["", "SLF4J: Failed to load class.\n"])
def test_a_log_whose_first_line_is_not_whole_yet_is_told_once(
    growing: Growing, path: Path, beginning: str
) -> None:
    """What it was is replaced by what it turns out to be."""
    text = beginning + lines(0, 30)
    for end in (len(beginning) + 10, len(beginning) + len(lines(0, 1)) - 1, len(text)):
        path.write_text(text[:end])
        assert plain(growing.take_in(path)) == wanted(path)


def test_what_is_read_anew_is_replaced_under_all_its_names(growing: Growing, path: Path) -> None:
    """It was told in part under its old name, and in part under its new one."""
    write(path, lines(0, 30))
    growing.take_in(path)
    new = renamed(path)
    late = ENTRIES[2].format(s=59, ms=0, n=1)
    write(new, f"{lines(30, 31)}{late}\n{lines(31, 32)}")
    assert plain(growing.take_in(new))[30:] == wanted(new)[30:]
    write(new, ENTRIES[13].format(s=59, ms=0, n=1) + "\n")
    assert plain(growing.take_in(new)) == wanted(new)
    assert growing.anew == 1


def test_equal_logs_of_two_machines_are_both_told(growing: Growing, tmp_path: Path) -> None:
    """And so are those beside each other, if no line tells a time."""
    paths = []
    for number, host in enumerate(("a", "b")):
        (tmp_path / host).mkdir()
        paths += [tmp_path / host / f"app-{host}.log", tmp_path / "a" / f"undated-{number}.log"]
        paths[-2].write_text(lines(0, 30))
        paths[-1].write_text("Offset commit failed: no\n")
    growing.take_in(*paths)
    found = growing.take_in(*paths)
    assert Counter(it.source.split(":")[0] for it in found) == {
        "app-a.log": 30,
        "app-b.log": 30,
        "undated-0.log": 1,
        "undated-1.log": 1,
    }


class Rotating:
    """One step after the other of what logrotate and those who write a log may do."""

    def __init__(self, path: Path, random: Random) -> None:
        self.path, self.random = path, random
        self.number = 0
        self.in_two_files = False
        self.steps = self._steps()

    def step(self) -> None:
        next(self.steps)

    def end(self) -> None:
        while self.in_two_files:
            self.step()

    def _steps(self) -> Iterator[None]:
        lines = self._lines()
        while True:
            for _ in range(self.random.randrange(1, 5)):
                count = self.random.choice([1, 3, 30])
                write(self.path, "".join(next(lines) for _ in range(count)))
                yield
            write(self.path, next(lines)[:-20])
            yield
            write(self.path, " and on\n")
            yield
            self.number += 1
            away = self.path.with_name(f"server.log.{self.number}")
            if self.random.random() < 0.3:
                self.path.rename(away)
                yield
                continue
            text, self.in_two_files = self.path.read_text(), True
            for end in (self.random.randrange(len(text)), len(text)):
                away.write_text(text[:end])
                yield
            empty(self.path)
            self.in_two_files = False
            yield

    def _lines(self) -> Iterator[str]:
        number = 0
        while True:
            number += 1
            template = self.random.choice(TOLD)
            line = template.format(s=number // 1000 % 60, ms=number % 1000, n=self.random.randrange(3))
            yield f"{line}\n"


@pytest.mark.parametrize("seed", range(2))
def test_whatever_happens_when_each_line_is_told_once(
    growing: Growing, path: Path, moment: Moment, seed: int
) -> None:
    """A look takes in what has changed since the one before; and things go on while it is read."""
    random = Random(seed)
    rotating = Rotating(path, random)
    known: set[tuple[Path, int, int]] = set()

    def some_steps() -> None:
        for _ in range(random.randrange(3)):
            rotating.step()

    def look() -> list[Event]:
        there = {(it, it.stat().st_size, it.stat().st_mtime_ns) for it in path.parent.iterdir()}
        new = there - known
        known.update(new)
        return growing.take_in(*(it for it, _, _ in sorted(new)))

    for _ in range(25):
        some_steps()
        choices: list[tuple[Callable[[], object], Callable[[], object]]] = [
            (some_steps, list),
            (list, some_steps),
            (list, list),
        ]
        moment.before, moment.after = random.choice(choices)
        look()
    moment.before = moment.after = list
    rotating.end()
    found = look()
    assert texts(found) == texts(event for it in path.parent.iterdir() for event in wanted(it))


def texts(events: Iterable[Event]) -> Counter[tuple[str, str, str, str | None]]:
    return Counter((it.kind, it.source, it.text, it.group) for it in events)
