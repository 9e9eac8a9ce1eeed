"""The fuzzers' own tools: a seed always does the same, and a failure names it."""

from random import Random

import pytest

from tests.fuzzing.mutation import mutated, run_seeds, runs


def test_a_seed_always_makes_the_same_mutation() -> None:
    """Otherwise a failure could not be repeated."""
    data, others = bytes(range(200)), (b"another", b"one")
    first = [mutated(data, Random(seed), others=others) for seed in range(300)]
    assert first == [mutated(data, Random(seed), others=others) for seed in range(300)]
    assert sum(made != data for made in first) > 290


def test_nothing_is_too_short_to_be_mutated() -> None:
    """Also an empty file is damaged."""
    for seed in range(300):
        mutated(b"", Random(seed))
        mutated(b"", Random(seed), others=(b"",))


def test_a_failure_names_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And that seed alone can be run again."""
    monkeypatch.delenv("KELPIE_FUZZ_SEED", raising=False)
    seen: list[float] = []

    def run(chance: Random) -> None:
        seen.append(chance.random())
        assert len(seen) != 3

    with pytest.raises(AssertionError) as caught:
        run_seeds(run, 10)
    assert caught.value.__notes__ == ["seed 3: KELPIE_FUZZ_SEED=3 runs it again"]
    failed = seen[2]
    monkeypatch.setenv("KELPIE_FUZZ_SEED", "3")
    run_seeds(run, 10)
    assert seen[3:] == [failed]


def test_a_long_run_can_be_done_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each begins at a seed of its own; together they are the long run."""
    monkeypatch.delenv("KELPIE_FUZZ_SEED", raising=False)
    whole: list[float] = []
    slices: list[float] = []
    run_seeds(lambda chance: whole.append(chance.random()), 6)
    for first in (1, 4):
        monkeypatch.setenv("KELPIE_FUZZ_FIRST", str(first))
        run_seeds(lambda chance: slices.append(chance.random()), 3)
    assert slices == whole


def test_the_environment_says_how_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `make fuzz` does."""
    monkeypatch.delenv("KELPIE_FUZZ_THINGS", raising=False)
    assert runs("KELPIE_FUZZ_THINGS", 7) == 7
    monkeypatch.setenv("KELPIE_FUZZ_THINGS", "12")
    assert runs("KELPIE_FUZZ_THINGS", 7) == 12
