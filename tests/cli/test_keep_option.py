"""--keep: for how long the tables of each layer keep their rows."""

import argparse
from datetime import UTC, date, datetime, timedelta

import pytest

from kelpie.cli.keep_option import add_keep_option, keep_of


def kept(*words: str) -> dict[str, timedelta]:
    parser = argparse.ArgumentParser()
    add_keep_option(parser)
    return dict(keep_of(parser.parse_args(words)).by_layer)


def test_without_it_all_rows_stay() -> None:
    """Nothing is deleted that nobody asked for."""
    assert kept() == {}


def test_one_time_is_for_all_layers_and_a_layer_may_have_its_own() -> None:
    """In any order."""
    ninety, years = timedelta(days=90), timedelta(days=730)
    expected = {"bronze": ninety, "silver": ninety, "gold": years}
    assert kept("--keep", "90d", "--keep", "gold=2y") == expected
    assert kept("--keep", "gold=2y", "--keep", "90d") == expected
    assert kept("--keep", "bronze=4w") == {"bronze": timedelta(days=28)}


@pytest.mark.parametrize("text", ["90", "0d", "copper=1d", "1h", "-1d", "gold=", "=1d=2d"])
def test_what_says_no_time_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With how to write it."""
    with pytest.raises(SystemExit):
        kept(f"--keep={text}")
    assert "write 90d, 12w or 2y" in capsys.readouterr().err


def test_days_are_kept_whole() -> None:
    """In UTC."""
    parser = argparse.ArgumentParser()
    add_keep_option(parser)
    keep = keep_of(parser.parse_args(["--keep", "bronze=2d"]))
    now = datetime(2026, 11, 17, 23, 59, tzinfo=UTC)
    assert keep.since("bronze", now) == date(2026, 11, 15)
    assert keep.since("gold", now) is None
